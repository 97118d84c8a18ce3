"""Which files an app takes for the environments of the topology."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.gitops.imports.environment_mapping import mapped, request_of, unmapped
from k8s_ucp.gitops.imports.findings import DiscoveredApp, NotImportable
from tests.unit.gitops.imports.test_detection import kustomized, place

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


def test_equal_names_need_no_word() -> None:
    assert unmapped([WEB], OURS, {}) == ["staging"]
    assert unmapped([WEB], OURS, {"staging": None}) == []
    assert mapped({"staging": "stage"}, OURS, ["prod", "staging"]) == {
        "stage": "staging",
        "prod": "prod",
    }
    assert mapped({"prod": "stage"}, OURS, ["prod"]) == {"stage": "prod"}


def test_what_is_said_of_another_app_s_environment_leaves_an_equal_name() -> None:
    said = {"production": "prod", "staging": "stage"}
    assert mapped(said, OURS, ["prod"]) == {"stage": "stage", "prod": "prod"}
    assert mapped(said, OURS, ["prod", "production"])["prod"] == "production"


def test_two_names_are_one_environment_if_no_app_has_both() -> None:
    said = {"staging": "stage", "qa": "stage"}
    assert mapped(said, OURS, ["staging"])["stage"] == "staging"
    assert mapped(said, OURS, ["qa", "prod"])["stage"] == "qa"
    with pytest.raises(NotImportable, match="staging and qa are both mapped to stage"):
        mapped(said, OURS, ["qa", "staging"])


def test_overlays_keep_their_place_below_the_nearest_common_folder() -> None:
    found = request_of(WEB, FILES, {"stage": "staging", "prod": "prod"}, OURS, pinned=False)
    assert found.path == ""
    assert found.overlays == {"stage": "overlays/staging/web", "prod": "overlays/prod/web"}
    assert found.files is not None
    assert "other/all.yaml" not in found.files
    assert found.folders == ("base/web", "overlays/prod/web", "overlays/staging/web")
    pinned = request_of(WEB, FILES, {"stage": "staging", "prod": "prod"}, OURS, pinned=True)
    assert pinned.files is None


def test_an_environment_without_overlay_takes_the_base_and_is_told() -> None:
    found = request_of(WEB, FILES, {"prod": "prod"}, OURS, pinned=False)
    assert found.overlays["stage"] == "base/web"
    assert found.notes == ("stage has no overlay of its own and uses the common one",)


def test_an_app_of_other_environments_is_not_taken() -> None:
    with pytest.raises(NotImportable, match="only on prod, staging"):
        request_of(WEB, FILES, {}, OURS, pinned=False)


def test_names_that_the_topology_has_need_no_overlay() -> None:
    overlays = {each: f"web/overlays/{each}" for each in OURS}
    app = DiscoveredApp("web", "kustomize", "web", "web/base", overlays, environments=OURS)
    files = place(kustomized("web/base", overlays))
    found = request_of(app, files, mapped({}, OURS, OURS), OURS, pinned=True)
    assert (found.path, found.overlays, found.notes) == ("web", {}, ())


def test_values_follow_their_environment_or_those_of_all() -> None:
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


def test_what_is_left_out_is_not_found_by_its_name() -> None:
    """An environment of ucp.yaml with the name of one that is left out takes what is common."""
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


def test_a_kustomization_that_an_application_changes_is_taken_as_changed() -> None:
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
