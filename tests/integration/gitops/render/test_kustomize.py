"""All rendered folders can be built with the pinned kustomize."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.manifests.kustomize import BuildFailed, build
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.publish.addresses import team_addresses
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Environment, load
from k8s_ucp.workspace import GitopsFolder
from tests.integration.gitops.conftest import roots
from tests.unit.gitops.topologies import FACTS, demo

TOPOLOGIES = Path(__file__).parents[3] / "golden" / "topologies"


def objects(text: str) -> dict[tuple[str, str], Any]:
    documents = load_all(text)
    return {(each["kind"], each["metadata"]["name"]): each for each in documents if each}


@pytest.mark.parametrize("name", sorted(each.stem for each in TOPOLOGIES.glob("*.yaml")))
def test_every_folder_builds(name: str, toolbox: Toolbox, tmp_path: Path) -> None:
    topology = load(TOPOLOGIES / f"{name}.yaml")
    inputs = replace(
        FACTS,
        manifests=read_manifests(topology, TOPOLOGIES),
        team_urls=team_addresses(topology, GitopsFolder(tmp_path / "gitops")),
    )
    render_to(tmp_path, render(topology, inputs))
    # `far` refers to a repository that doesn't exist.
    found = [each for each in roots(tmp_path) if "far" not in each.parts]
    # This must also be true for a topology without environments.
    assert {"clusters", "projects", topology.spec.core.provider} <= {each.name for each in found}
    for folder in found:
        build(toolbox.path("kustomize"), folder)


def test_overlay_has_the_settings_of_the_topology(toolbox: Toolbox, tmp_path: Path) -> None:
    app = App(name="web", image="reg:5000/web", tag="1.10", hosts=("www",), replicas=3)
    render_to(tmp_path, render(demo(apps=(app,)), FACTS))
    built = objects(build(toolbox.path("kustomize"), tmp_path / "apps/apps/web/overlays/prod"))
    deployment = built["Deployment", "web"]["spec"]
    assert deployment["replicas"] == 3
    assert deployment["template"]["spec"]["containers"][0]["image"] == "reg:5000/web:1.10"
    hosts = [rule["host"] for rule in built["Ingress", "web"]["spec"]["rules"]]
    assert hosts == ["www.prod.example.org"]
    assert ("Service", "web") in built


def test_clusters_and_the_list_of_environments_are_built(toolbox: Toolbox, tmp_path: Path) -> None:
    environments = (
        Environment.model_validate({"name": "stage"}),
        Environment.model_validate(
            {
                "name": "prod",
                "access": "scoped",
                "deletionProtection": True,
                "cluster": {"version": "v1.35.4"},
            }
        ),
    )
    render_to(tmp_path, render(demo(environments=environments), FACTS))
    built = objects(build(toolbox.path("kustomize"), tmp_path / "core/clusters"))
    names = built["ConfigMap", "k8s-ucp-environments"]
    assert names["data"] == {"stage": "", "prod": ""}
    assert names["metadata"]["namespace"] == "ucp-clusters"
    stage, prod = built["LocalCluster", "demo-stage"], built["LocalCluster", "demo-prod"]
    assert stage["spec"] == {"provider": "embedded", "machine": FACTS.machine}
    assert stage["metadata"]["labels"] == {
        "k8s-ucp.io/topology": "demo",
        "k8s-ucp.io/environment": "stage",
        "k8s-ucp.io/access": "admin",
    }
    assert prod["spec"]["version"] == "v1.35.4"
    assert prod["metadata"]["labels"]["k8s-ucp.io/protected"] == "true"
    options = prod["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    assert "Prune=false" in options.split(",")


def test_empty_topology_builds(toolbox: Toolbox, tmp_path: Path) -> None:
    render_to(tmp_path, render(demo(environments=(), apps=()), FACTS))
    for folder in roots(tmp_path):
        build(toolbox.path("kustomize"), folder)


def test_folder_that_can_not_be_built_is_reported_with_the_reason(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [nothing.yaml]\n")
    with pytest.raises(BuildFailed, match=r"nothing\.yaml"):
        build(toolbox.path("kustomize"), tmp_path)


def test_a_repeated_key_below_a_folder_is_reported_with_its_file(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n"
    base, overlay = tmp_path / "base", tmp_path / "overlay"
    base.mkdir()
    overlay.mkdir()
    (base / "kustomization.yaml").write_text("resources: [a.yaml, b.yaml]\n")
    (base / "a.yaml").write_text(config)
    (base / "b.yaml").write_text(config.replace("web", "b").replace("a: b", "a: b, a: c"))
    (overlay / "kustomization.yaml").write_text("resources: [../base]\n")
    with pytest.raises(BuildFailed, match=r"/base/b\.yaml: `a` in line 4 is there twice"):
        build(toolbox.path("kustomize"), overlay)
