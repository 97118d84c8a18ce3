"""Golden trees of the rendered repositories: they show in review what a change of a template does.

`make update-golden` writes what is rendered now; review the diff before you commit it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k8s_ucp.gitops.publish.addresses import team_addresses
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import Rendered, RenderInputs, render
from k8s_ucp.topology import load
from k8s_ucp.topology.schema import NAME
from k8s_ucp.workspace import GitopsFolder

HERE = Path(__file__).parent
TOPOLOGIES = sorted(each.stem for each in (HERE / "topologies").glob("*.yaml"))


def rendered(name: str) -> Rendered:
    file = HERE / "topologies" / f"{name}.yaml"
    topology = load(file)
    git = topology.spec.git
    now = render(
        topology,
        RenderInputs(
            machine="0123456789abcdef",
            core_url=git.core or f"file:///home/me/gitops/{name}/core.git",
            apps_url=git.apps or f"file:///home/me/gitops/{name}/apps.git",
            topology_file=file.read_bytes(),
            manifests=read_manifests(topology, file.parent),
            engine={"argocd": {"crds.yaml": b"kind: CustomResourceDefinition\n"}},
            versions={"argocd": "v0.0.0"},
            reconciler_image="k8s-ucp/reconciler:0.0.0-0123456789ab",
            repositories="/srv/k8s-ucp/git",
            owner=1000,
            team_urls=team_addresses(topology, GitopsFolder(Path(f"/home/me/gitops/{name}"))),
        ),
    )
    del now.core[NAME]  # Also generated, and compared in tests/unit/topology.
    return now


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_rendered_repositories_match_the_golden_trees(name: str, update_golden: bool) -> None:
    now, folder = rendered(name), HERE / "trees" / name
    if update_golden:
        shutil.rmtree(folder, ignore_errors=True)
        render_to(folder, now)
    files = {**_below("core", now.core), **_below("apps", now.apps)}
    reviewed = {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }
    assert sorted(reviewed) == sorted(files), "files came or went: make update-golden"
    for path, text in files.items():
        assert text.decode() == reviewed[path].decode(), f"{path}: make update-golden"


def _below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{path}": text for path, text in files.items()}
