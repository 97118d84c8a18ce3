"""`ucp status NAME`, and the holds of promotions in `ucp status`."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cli.inspection.status import _holds, _selected, _with_taken_ports, collect
from k8s_ucp.cli.inspection.status_page import page
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.promotion.order import Mark, write_marks
from k8s_ucp.inspect.cluster_snapshot import ComponentStatus
from k8s_ucp.inspect.status import ClusterSnapshot, summarize
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace
from tests.person import commit_all, git

TOPOLOGY = default("demo", ["stage", "prod"])
NOTHING = summarize(TOPOLOGY, ClusterSnapshot(core_ready=False))


def test_an_app_without_applications_is_listed_as_unknown() -> None:
    found = _selected(NOTHING, "echo", TOPOLOGY)
    rows = [(each["name"], each["health"]) for each in found["applications"]]
    assert rows == [("echo-stage", None), ("echo-prod", None)]
    assert found["environments"] == []


def test_an_unknown_name_suggests_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="component or mirror 'ecco'; available: echo") as error:
        _selected(NOTHING, "ecco", TOPOLOGY)
    assert error.value.next == "ucp status echo"


def test_a_copy_of_a_workspace_does_not_show_the_clusters_of_the_original(tmp_path: Path) -> None:
    original = Workspace.at(tmp_path / "original")
    original.settle_identity()
    copy = Workspace.at(shutil.copytree(original.root, tmp_path / "copy"))
    seen = collect(TopologyView(workspace=copy, topology=TOPOLOGY))
    assert seen == ClusterSnapshot(core_ready=False, stopped=True, original=str(original.root))
    assert summarize(TOPOLOGY, seen)["copyOf"] == str(original.root)
    start = "ucp start --workspace w"
    shown = page(summarize(TOPOLOGY, seen), seen, {}, start=start).splitlines()[0]
    assert shown.startswith("topology demo was not started in this copy of the workspace")
    assert f"--workspace {original.root} to the command; or {start}" in shown
    assert collect(TopologyView(workspace=original, topology=TOPOLOGY)).original == ""


def test_holds_are_read_from_the_local_repository(tmp_path: Path) -> None:
    view = TopologyView(workspace=Workspace.at(tmp_path), topology=TOPOLOGY)
    assert _holds(view) == {}
    clone = view.workspace.gitops("demo").apps
    overlay = clone / "apps/echo/overlays/prod"
    overlay.mkdir(parents=True)
    (overlay / ".promotion.yaml").write_text(write_marks({"echo": Mark(held=("1.4.0",))}))
    commit_all(clone)
    git(clone, "clone", "--bare", ".", str(view.workspace.gitops("demo").apps_remote))
    assert _holds(view) == {("echo", "prod"): ["1.4.0"]}


def test_a_program_of_the_core_that_hangs_is_shown_beside_an_api_server_that_is_ready() -> None:
    seen = ClusterSnapshot(core_ready=True, core_problem="kube-scheduler: timed out")
    summary = summarize(TOPOLOGY, seen)
    assert summary["core"]["ready"] is False
    assert summary["core"]["message"] == "kube-scheduler: timed out"
    row = next(line for line in page(summary, seen, {}).splitlines() if "demo-core" in line)
    assert "NOT READY" in row
    assert "kube-scheduler: timed out; ucp start repairs it" in row
    assert "unknown while the core" not in page(summary, seen, {})


def test_the_program_that_has_the_port_of_a_component_is_named() -> None:
    """The component's own error is of what it, or that program, responds."""
    found = [
        ComponentStatus("argocd", "v3", ready=False, placement="host", message="timed out"),
        ComponentStatus("crossplane", "v2", ready=True, placement="host"),
    ]
    with socket.create_server((ADDRESS, 0)) as stranger:
        port = stranger.getsockname()[1]
        ports = {"argocd-server": port}
        context: Any = SimpleNamespace(
            placement=SimpleNamespace(unused=dict),
            host=SimpleNamespace(ports=ports),
            topology=TOPOLOGY,
        )
        messages = [each.message for each in _with_taken_ports(context, found)]
        context.placement.unused = lambda _: {}
        assert _with_taken_ports(context, found) == found
    assert messages[0].startswith(
        f"port {port} of argocd-server in topology demo is already in use"
    )
    assert f"(PID {os.getpid()})" in messages[0]
    assert messages[1] == ""
