"""Names and namespaces of apps in folders that Flux's Kustomizations deploy."""

from __future__ import annotations

from typing import Any

from k8s_ucp.gitops.manifests.yaml_text import dump_all
from tests.unit.gitops.imports.repository_files import CONFIG, found, kustomized, overlay

CLAIM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${APP}-data'}\n"


def kustomization(name: str, path: str, **spec: Any) -> str:
    head = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
    return dump_all([{**head, "metadata": {"name": name}, "spec": {"path": path, **spec}}])


def test_a_folder_gets_name_and_namespace_of_the_kustomization_that_deploys_it() -> None:
    files = {
        "flux.yaml": kustomization("multus-networks", "./multus/networks", targetNamespace="net"),
        "multus/networks/kustomization.yaml": overlay("a.yaml"),
        "multus/networks/a.yaml": CONFIG,
    }
    there = found(files)
    [only] = there.findings
    assert (only.name, only.namespace, only.notes) == ("multus-networks", "net", ())
    assert not there.refusals


def test_overlays_in_one_namespace_are_named_by_their_folder() -> None:
    files = kustomized("web/base", {"qa": "web/qa", "prod": "web/prod"})
    for each in ("qa", "prod"):
        files[f"{each}.yaml"] = kustomization(f"web-{each}", f"web/{each}", targetNamespace="shop")
    [only] = found(files).findings
    assert (only.name, only.namespace) == ("web", "shop")


def test_common_names_and_different_namespaces_change_nothing() -> None:
    files = {
        "a.yaml": kustomization("apps", "./web", targetNamespace="a"),
        "b.yaml": kustomization("apps", "./web", targetNamespace="b"),
        "patch.yaml": kustomization("_", ""),
        "web/a.yaml": CONFIG,
    }
    [only] = found(files).findings
    assert (only.name, only.namespace) == ("web", None)


def test_what_flux_would_change_is_noted() -> None:
    spec = {"patches": [{"patch": "a"}], "postBuild": {"substitute": {"APP": "web"}}}
    files = {
        "flux.yaml": kustomization("web", "./web", **spec),
        "web/kustomization.yaml": overlay("claim.yaml"),
        "web/claim.yaml": CLAIM,
    }
    [only] = found(files).findings
    assert only.notes == (
        "patches of flux.yaml:1 are not applied: add them to its overlays",
        "Flux would fill ${APP} in it: write what they stand for",
    )
