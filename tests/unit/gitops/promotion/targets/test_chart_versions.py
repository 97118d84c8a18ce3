"""Promotion of chart versions: one line if Argo CD fetches the chart, otherwise its files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.decision import Decision, Intent, decide
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.overlay import read_overlay
from k8s_ucp.gitops.promotion.rollback import Rollback, decide_rollback
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, ChartKey, ChartMissing, content_of
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.versions import parse_chart_version
from tests.unit.gitops.promotion.tips import MemoryTip, tip

ENVIRONMENTS = "environments: [{name: stage}, {name: prod, promotesFrom: stage}]\n"


def chart_files(version: str, **more: str) -> dict[str, str]:
    return {
        "Chart.yaml": f"name: web\nversion: {version}\n",
        "values.yaml": f"image: {{repository: web, tag: '1'}} # {version}\n",
        f"templates/only-{version}.yaml": "kind: X\n",
        "templates/web.yaml": f"# {version}\n",
        **more,
    }


def charts(stage: str = "1.0.0", prod: str = "1.0.0") -> MemoryTip:
    """web as a copied chart, with its own values in each environment."""
    files = {"environments.yaml": ENVIRONMENTS}
    for env, version in (("stage", stage), ("prod", prod)):
        own = {
            f"values-{env}.yaml": f"# {env}'s\nimage:\n  tag: '1'\n",
            ".argocd-source.yaml": f"helm: {{valueFiles: [values-{env}.yaml]}}\n",
            ".promotion.yaml": 'images:\n  "web": {}\n',
        }
        named = {**chart_files(version), **own}
        files |= {f"apps/web/overlays/{env}/{name}": text for name, text in named.items()}
    return tip(files)


def content(version: str, **more: str) -> ChartContent:
    files = {name: text.encode() for name, text in chart_files(version, **more).items()}
    return ChartContent(version, files)


def fetched(version: str, **more: str) -> dict[ChartKey, ChartContent]:
    return {("web", "web", version): content(version, **more)}


def promote(there: MemoryTip, version: str, env: str = "stage", **more: Any) -> Decision:
    pins = {more.pop("chart", ""): parse_chart_version(version)}
    return decide(there, Intent("web", env, charts=pins, **more))


def after(there: MemoryTip, decision: Decision) -> MemoryTip:
    assert decision.status == "promoted", decision.reason
    files = {**there.content, **decision.writes}
    return MemoryTip({path: text for path, text in files.items() if text is not None})


def folder(there: MemoryTip, env: str) -> dict[str, bytes]:
    start = f"apps/web/overlays/{env}/"
    return {path[len(start) :]: text for path, text in there.content.items() if start in path}


def test_a_fetched_version_replaces_the_files_of_the_old_one() -> None:
    there = charts()
    decision = promote(there, "1.2.0", contents=fetched("1.2.0"))
    files = folder(after(there, decision), "stage")
    assert files == {
        **{name: text for name, text in folder(there, "stage").items() if "1.0.0" not in name},
        **content("1.2.0").files,
    }
    assert folder(after(there, decision), "prod") == folder(there, "prod")
    text = message([decision.note])
    assert text.startswith("promote web to stage: chart 1.0.0 -> 1.2.0\n")
    assert "Ucp-Chart: web\nUcp-From: 1.0.0\nUcp-To: 1.2.0" in text


def test_a_version_that_is_not_available_must_be_fetched() -> None:
    with pytest.raises(ChartMissing) as error:
        promote(charts(), "1.2.0")
    assert (error.value.chart, error.value.version) == ("web", "1.2.0")


def test_a_promotion_copies_the_chart_of_the_earlier_environment() -> None:
    there = charts(stage="1.2.0")
    for decision in (
        promote(there, "1.2.0", "prod"),
        decide(there, Intent("web", "prod", source="stage")),
    ):
        found = after(there, decision)
        assert content_of(EnvironmentFolder(found, "apps/web/overlays/prod"), "prod").files == {
            name: text.encode() for name, text in chart_files("1.2.0").items()
        }
        own = "values-prod.yaml"
        assert folder(found, "prod")[own] == folder(there, "prod")[own]
        assert "values-stage.yaml" not in folder(found, "prod")
        # Pods don't show the version of a chart, so no image is required of them.
        assert decision.required == (("stage", {}),)


def test_charts_of_two_apps_with_the_same_version_are_not_mixed_up() -> None:
    theirs = {("shop", "shop", "1.2.0"): content("1.2.0")}
    with pytest.raises(ChartMissing) as missing:
        promote(charts(), "1.2.0", contents=theirs)
    assert missing.value.key == ("web", "web", "1.2.0")


def test_a_new_version_is_gated_and_the_same_version_is_unchanged() -> None:
    there = charts()
    more = fetched("1.2.0")
    assert promote(there, "1.2.0", "prod", contents=more).status == "gated"
    assert promote(there, "1.0.0").status == "unchanged"


def test_tags_and_chart_versions_are_promoted_together() -> None:
    there = charts(stage="1.2.0")
    path = "apps/web/overlays/stage/values-stage.yaml"
    there = MemoryTip({**there.content, path: b"image: {tag: '2'}\n"})
    decision = decide(there, Intent("web", "prod", source="stage"))
    assert {each.image for each in decision.note.changes} == {"web", "chart web"}
    files = folder(after(there, decision), "prod")
    assert files["values-prod.yaml"] == b"# prod's\nimage:\n  tag: '2'\n"
    assert b"1.2.0" in files["Chart.yaml"]


def test_a_version_that_would_overwrite_the_environments_values_is_refused() -> None:
    there = charts()
    path = "apps/web/overlays/stage/.argocd-source.yaml"
    there = MemoryTip({**there.content, path: b"helm: {valueFiles: [values.yaml]}\n"})
    with pytest.raises(NotEditable, match="values would be lost"):
        promote(there, "1.2.0", contents=fetched("1.2.0"))


DEPENDENCIES = """\
name: shop
version: 1.0.0
dependencies:
  - name: web
    repository: https://charts.example.org
    version: 1.0.0  # by CI
"""


def test_the_version_of_a_chart_that_argo_cd_fetches_is_one_line() -> None:
    there = tip({"apps/web/overlays/stage/Chart.yaml": DEPENDENCIES})
    with pytest.raises(UsageError, match="2 charts: shop, web") as error:
        promote(there, "1.2.0")
    assert error.value.next == "ucp promote web --env stage --chart-version shop=1.2.0"
    decision = promote(there, "1.2.0", chart="web")
    text = DEPENDENCIES.replace("1.0.0  # by", "1.2.0  # by")
    assert list(decision.writes.values()) == [text.encode()]
    there = MemoryTip({**there.content, "apps/web/.promotion.yaml": b"targets: [{chart: web}]\n"})
    assert promote(there, "1.2.0").writes == decision.writes
    locked = {**there.content, "apps/web/overlays/stage/Chart.lock": b"x: 1\n"}
    with pytest.raises(UcpError, match="contains nothing that"):
        promote(MemoryTip(locked), "1.2.0")


def test_a_chart_with_the_name_of_its_dependency_has_the_dependencys_version() -> None:
    text = (
        "name: web\nversion: 0.1.0\ndependencies:\n- name: web\n"
        "  repository: https://charts.example.org\n  version: 1.0.0\n"
    )
    values = "web:\n  image: {repository: example.org/web, tag: 1.0.0}\n"
    folder = "apps/web/overlays/stage"
    there = tip({f"{folder}/Chart.yaml": text, f"{folder}/values.yaml": values})
    assert promote(there, "1.2.0").writes == {
        f"{folder}/Chart.yaml": text.replace("1.0.0", "1.2.0").encode()
    }
    tagged = decide(there, Intent("web", "stage", pin=Pin("2.0.0")))
    assert tagged.writes == {f"{folder}/values.yaml": values.replace("1.0.0", "2.0.0").encode()}


def test_a_chart_that_is_used_twice_is_named_by_alias_or_release() -> None:
    use = "- {name: cache, %s: %s, version: 1.0.0, repository: 'https://charts.example.org'}\n"
    for file, head, key in (
        ("Chart.yaml", "name: web\nversion: 0.1.0\ndependencies:\n", "alias"),
        ("kustomization.yaml", "helmCharts:\n", "releaseName"),
    ):
        text = head + use % (key, "sessions") + use % (key, "pages")
        there = tip({f"apps/web/overlays/stage/{file}": text})
        old, new = use % (key, "pages"), use.replace("1.0.0", "1.2.0") % (key, "pages")
        assert list(promote(there, "1.2.0", chart="pages").writes.values()) == [
            text.replace(old, new).encode()
        ]


def test_a_chart_that_is_used_twice_without_another_name_changes_in_both_places() -> None:
    use = "- {name: cache, version: 1.0.0, repo: 'https://charts.example.org'}\n"
    text = f"helmCharts:\n{use}{use}"
    there = tip({"apps/web/overlays/stage/kustomization.yaml": text})
    assert list(promote(there, "1.2.0").writes.values()) == [
        text.replace("1.0.0", "1.2.0").encode()
    ]


def test_the_version_of_a_chart_in_a_kustomization_is_one_line() -> None:
    text = "helmCharts:\n- name: web\n  version: 1.0.0\n  repo: https://charts.example.org\n"
    there = tip({"apps/web/overlays/stage/kustomization.yaml": text})
    assert list(promote(there, "1.2.0+b.1").writes.values()) == [
        text.replace("1.0.0", "1.2.0+b.1").encode()
    ]
    with pytest.raises(UcpError, match="no chart wob") as error:
        promote(there, "1.2.0", chart="wob")
    assert (error.value.next, error.value.exit_code) == ("did you mean web?", 2)


@pytest.mark.parametrize("text", ["", "latest", "~1.2", "1.2.x", ">=1", "1.2.3\n", "a/b"])
def test_chart_versions_must_be_exact(text: str) -> None:
    with pytest.raises(UsageError, match="not a valid chart version"):
        parse_chart_version(text)


names = st.sampled_from(["a.yaml", "templates/b.yaml", "charts/c/Chart.yaml", "README.md"])


@given(st.dictionaries(names, st.text("xy\n"), max_size=4))
def test_a_promotion_and_its_rollback_restore_the_same_bytes(more: dict[str, str]) -> None:
    there = charts()
    was = content_of(EnvironmentFolder(there, "apps/web/overlays/stage"), "stage")
    decision = promote(there, "2.0.0", contents=fetched("2.0.0", **more))
    new = after(there, decision)
    overlay = read_overlay(new, "web", "stage")
    assert overlay.pins["chart web"] == Pin("2.0.0")
    pins = {"chart web": Pin("1.0.0")}
    rollback = Rollback("web", "stage", pins, overlay.pins, {"chart web": was})
    back = after(new, decide_rollback(new, rollback))
    marks = "apps/web/overlays/stage/.promotion.yaml"
    assert {**back.content, marks: b""} == {**there.content, marks: b""}
    held = promote(back, "2.0.0", contents=fetched("2.0.0", **more))
    assert held.status == "held"
