"""Flags that are proposed where an environment is not mapped."""

from __future__ import annotations

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.editing.imports.choices import (
    complete_mapping,
    noting_unknown,
    pick_apps,
    proposed_flags,
    refuse_unknown,
)
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery


def test_names_of_environments_in_proposed_flags_are_quoted_for_a_shell() -> None:
    assert proposed_flags(["$(id)"], ["prod"], {}, {}) == ["--map '$(id)'=prod"]


def test_flags_that_are_proposed_name_environments_of_ucp_yaml(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)

    def advice(*theirs: str) -> str | None:
        [picked] = [DiscoveredApp("web", "kustomize", "web", environments=theirs)]
        with pytest.raises(UsageError) as failed:
            complete_mapping([picked], ["dev", "stage", "prod"], {}, skip_others=False)
        return failed.value.next

    assert advice("prod-eu", "prod-us", "qa") == (
        "map them: --map prod-eu=prod --skip-env prod-us --skip-env qa; to keep one that is left "
        "out: --map NAME=ENV, or first `ucp env add NAME`"
    )
    assert advice("testing") == "map them: --map testing=dev (or --skip-env NAME)"
    assert advice("dev", "test") == ("map them: --map test=stage (or --skip-env NAME)")


def test_flags_for_many_environments_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)
    theirs = ("production", *(f"v{each:02}" for each in range(20)))
    picked = [DiscoveredApp(each, "kustomize", each, environments=(each,)) for each in theirs]
    with pytest.raises(UsageError) as failed:
        complete_mapping(picked, ["stage", "prod"], {}, skip_others=False)
    assert failed.value.next == (
        "map those that you want, and leave out all others: --map production=prod --skip-env '*'; "
        "or import single apps with --app NAME"
    )


def test_flags_for_apps_that_were_not_found_are_refused() -> None:
    found = Discovery((DiscoveredApp("web", "kustomize", "web"),))
    refuse_unknown(found, {"namespace": {"web": ["shop"]}})
    with pytest.raises(UsageError, match="unknown app 'wbe'; available: web"):
        refuse_unknown(found, {"namespace": {"wbe": ["shop"]}})


def test_a_mapped_environment_that_no_app_has_is_noted() -> None:
    web = DiscoveredApp("web", "kustomize", "web", environments=("production", "qa"))
    mapping = {"producton": "prod", "qa": "stage", "old": None}
    assert noting_unknown(Discovery((web,), notes=("first",)), mapping).notes == (
        "first",
        "--map producton=prod changes nothing: no app has an environment producton; they have "
        "production, qa",
    )
    (note,) = noting_unknown(Discovery(), {"qa": "stage"}).notes
    assert note.endswith("no app has an environment qa; they have no environments")


def test_a_flag_may_be_given_twice() -> None:
    apps = [DiscoveredApp(name, "kustomize", name) for name in ("web", "shop")]
    picked = pick_apps(Discovery(tuple(apps)), (), ["shop", "shop"], every=True, dry_run=False)
    assert [each.name for each in picked] == ["web"]
