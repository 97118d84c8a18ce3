"""The versions that new clusters get, according to what the existing ones run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded import programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.context import StartContext
from k8s_ucp.steps.upgrading.upgrade import record_versions
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo

PIN = CATALOGUE["kubernetes"].version


def entry(version: str) -> str:
    return f"kubernetes-{version}-0f"


@pytest.mark.parametrize(
    ("prod", "recorded"),
    [(PIN, PIN), (None, PIN), ("1.2.3", "1.2.3"), ("99.0.0", "1.2.3")],
    ids=["all upgraded", "the last old one was removed", "one is older", "one is newer"],
)
def test_new_clusters_get_the_new_version_once_all_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prod: str | None, recorded: str
) -> None:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(StartContext, "settle_runtime", lambda _: None)
    context = StartContext(
        workspace=Workspace.at(tmp_path),
        topology=demo(),
        toolbox=Toolbox({}, {}, {"kubernetes": entry("1.2.3")}),
    )
    context.upgrade.pins = Toolbox({}, {}, {"kubernetes": entry(PIN)})
    running = {"demo-core": PIN, "demo-stage": PIN, **({"demo-prod": prod} if prod else {})}
    for cluster, version in running.items():
        path = tmp_path / "tools" / entry(version) / "bin" / "kube-apiserver"
        folder = ClusterFolder(context.state.clusters, cluster)
        programs.links(folder)["kube-apiserver"].parent.mkdir(parents=True)
        programs.link(folder, {"kube-apiserver": path})
    record_versions(context)
    assert json.loads(context.state.versions.read_text()) == {"kubernetes": entry(recorded)}
