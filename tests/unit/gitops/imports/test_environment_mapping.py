"""Mapping of an imported app's environments to those of the topology."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.gitops.imports.environment_mapping import mapped, request_of, unmapped
from k8s_ucp.gitops.imports.findings import DiscoveredApp, NotImportable
from tests.unit.gitops.imports.repository_files import kustomized, place

OURS = ("stage", "prod")
WEB = DiscoveredApp(
    name="web",
    form="kustomize",
    where="web",
    path="base/web",
    overlays={"staging": "overlays/staging/web", "prod": "overlays/prod/web"},
    environments=("prod", "staging"),
)
FILES = place(kustomized("base/web", WEB.overlays) | {"other/all.yaml": ""})


def test_environments_with_equal_names_are_mapped_automatically() -> None:
    assert unmapped([WEB], OURS, {}) == ["staging"]
    assert unmapped([WEB], OURS, {"staging": None}) == []
    assert mapped({"staging": "stage"}, OURS, ["prod", "staging"]) == {
        "stage": "staging",
        "prod": "prod",
    }
    assert mapped({"prod": "stage"}, OURS, ["prod"]) == {"stage": "prod"}


def test_a_mapping_for_another_app_does_not_replace_an_equal_name() -> None:
    said = {"production": "prod", "staging": "stage"}
    assert mapped(said, OURS, ["prod"]) == {"stage": "stage", "prod": "prod"}
    assert mapped(said, OURS, ["prod", "production"])["prod"] == "production"


def test_two_names_can_map_to_one_environment_if_no_app_has_both() -> None:
    said = {"staging": "stage", "qa": "stage"}
    assert mapped(said, OURS, ["staging"])["stage"] == "staging"
    assert mapped(said, OURS, ["qa", "prod"])["stage"] == "qa"
    with pytest.raises(NotImportable, match="staging and qa are both mapped to stage"):
        mapped(said, OURS, ["qa", "staging"])


def test_overlays_keep_their_paths_below_the_nearest_common_folder() -> None:
    found = request_of(WEB, FILES, {"stage": "staging", "prod": "prod"}, OURS, pinned=False)
    assert found.path == ""
    assert found.overlays == {"stage": "overlays/staging/web", "prod": "overlays/prod/web"}
    assert found.files is not None
    assert "other/all.yaml" not in found.files
    assert found.folders == ("base/web", "overlays/prod/web", "overlays/staging/web")
    pinned = request_of(WEB, FILES, {"stage": "staging", "prod": "prod"}, OURS, pinned=True)
    assert pinned.files is None


def test_an_environment_without_an_overlay_uses_the_base_and_is_reported() -> None:
    found = request_of(WEB, FILES, {"prod": "prod"}, OURS, pinned=False)
    assert found.overlays["stage"] == "base/web"
    assert found.notes == ("stage has no overlay of its own and uses the common one",)


def test_an_app_without_a_mapped_environment_is_refused() -> None:
    with pytest.raises(NotImportable, match="only on prod, staging"):
        request_of(WEB, FILES, {}, OURS, pinned=False)


def test_no_environment_that_is_used_is_proposed_for_another_one() -> None:
    """Mapping it to the other one would only leave its own without an overlay."""
    overlays = {each: f"web/{each}" for each in ("dev", "stage")}
    app = DiscoveredApp("web", "kustomize", "web", None, overlays, environments=("dev", "stage"))
    files = place(kustomized("base", overlays))

    def advice(**said: str | None) -> str:
        mapping = mapped(said, OURS, overlays)
        with pytest.raises(NotImportable, match="nothing for the environment prod") as refused:
            request_of(app, files, mapping, OURS, pinned=False)
        return refused.value.advice

    assert advice() == "--map dev=prod, or write an overlay for prod in that repository"
    assert advice(dev="stage", stage=None) == (
        "--map stage=prod, or write an overlay for prod in that repository"
    )
    ours = ("dev", "stage", "prod")
    with pytest.raises(NotImportable) as refused:
        request_of(app, files, mapped({}, ours, overlays), ours, pinned=False)
    assert refused.value.advice == "write an overlay for prod in that repository"


def test_the_proposed_environment_is_the_most_similar_one() -> None:
    overlays = {each: f"web/{each}" for each in ("dev", "prod", "staging")}
    app = DiscoveredApp("web", "kustomize", "web", None, overlays, environments=tuple(overlays))
    mapping = mapped({"dev": None, "staging": None}, OURS, overlays)
    with pytest.raises(NotImportable) as refused:
        request_of(app, place(kustomized("base", overlays)), mapping, OURS, pinned=False)
    assert refused.value.advice.startswith("--map staging=stage, or")


def test_overlays_named_like_environments_need_no_entry_in_ucp_yaml() -> None:
    overlays = {each: f"web/overlays/{each}" for each in OURS}
    app = DiscoveredApp("web", "kustomize", "web", "web/base", overlays, environments=OURS)
    files = place(kustomized("web/base", overlays))
    found = request_of(app, files, mapped({}, OURS, OURS), OURS, pinned=True)
    assert (found.path, found.overlays, found.notes) == ("web", {}, ())


def test_values_are_mapped_by_environment_with_the_common_ones_as_default() -> None:
    app = DiscoveredApp(
        "web",
        "helm",
        "web",
        "web",
        values={"staging": "a.yaml", "": b"b"},
        environments=("staging",),
    )
    found = request_of(app, place({}), {"stage": "staging"}, OURS, pinned=True)
    assert found.values == {"stage": "a.yaml", "prod": b"b"}


def test_a_skipped_environment_is_not_mapped_to_an_equal_name() -> None:
    """The environment of that name in ucp.yaml uses the base or the common values."""
    mapping = mapped({"prod": None}, OURS, OURS)
    overlays = {each: f"web/overlays/{each}" for each in OURS}
    app = DiscoveredApp("web", "kustomize", "web", "web/base", overlays, environments=OURS)
    files = place(kustomized("web/base", overlays))
    for pinned in (True, False):
        found = request_of(app, files, mapping, OURS, pinned=pinned)
        assert (found.path, found.overlays) == ("web", {"prod": "base"})
    chart = DiscoveredApp("web", "helm", "web", "web", environments=OURS)
    chart = replace(chart, values={each: f"values-{each}.yaml" for each in OURS})
    values = request_of(chart, files, mapping, OURS, pinned=True).values
    assert values["stage"] == "values-stage.yaml"
    assert isinstance(values["prod"], bytes) and b":" not in values["prod"]


def test_a_chart_that_nothing_deploys_has_its_defaults_without_a_mapped_environment() -> None:
    chart = DiscoveredApp("web", "helm", "web/Chart.yaml", "web", environments=("dev",))
    chart = replace(chart, values={"dev": "dev-values.yaml"})
    found = request_of(chart, FILES, mapped({"dev": None}, OURS, ["dev"]), OURS, pinned=False)
    assert found.values == {}
    assert found.notes == tuple(
        f"{each} has no values of its own and uses the defaults of its chart" for each in OURS
    )
    declared = replace(chart, where="argocd/web-dev.yaml:1")
    with pytest.raises(NotImportable, match="only on dev"):
        request_of(declared, FILES, mapped({"dev": None}, OURS, ["dev"]), OURS, pinned=False)


def test_a_kustomization_that_an_application_changes_is_imported_with_the_changes() -> None:
    files = place({"web/kustomization.yaml": "resources: [x.yaml]\n", "web/x.yaml": "kind: X\n"})
    new = {"web/kustomization.yaml": b"resources: [x.yaml]\nnamePrefix: a-\n"}
    app = replace(WEB, path="web", overlays={}, environments=(), generated=new)
    found = request_of(app, files, {}, OURS, pinned=False)
    assert found.path == "web"
    assert found.files == {
        "kustomization.yaml": new["web/kustomization.yaml"],
        "x.yaml": b"kind: X\n",
    }
    with pytest.raises(NotImportable, match="has to be generated"):
        request_of(app, files, {}, OURS, pinned=True)
