"""Flags that are proposed where an environment is not mapped."""

from __future__ import annotations

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.editing.imports.choices import complete_mapping, proposed_flags
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import DiscoveredApp


def test_names_of_environments_in_proposed_flags_are_quoted_for_a_shell() -> None:
    assert proposed_flags(["$(id)"], ["prod"], {}, {}) == ["--map '$(id)'=ENV"]


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
