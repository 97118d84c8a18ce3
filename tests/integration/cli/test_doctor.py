"""What `ucp doctor` finds on this machine, whatever the core cluster says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k8s_ucp.cli.inspection.doctor import _lacks
from k8s_ucp.context import TopologyView
from k8s_ucp.inspect.doctor.checks import Examined, findings
from k8s_ucp.inspect.status import ClusterSnapshot
from k8s_ucp.preflight import machine
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace

TOPOLOGY = default("demo", ["stage"])


@pytest.fixture
def view(tmp_path: Path) -> TopologyView:
    """With clones, whose remotes are there."""
    found = TopologyView(Workspace.at(tmp_path), TOPOLOGY)
    for clone, remote in (
        (found.gitops.core, found.gitops.core_remote),
        (found.gitops.apps, found.gitops.apps_remote),
    ):
        subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
        subprocess.run(["git", "clone", "--quiet", remote, clone], check=True, capture_output=True)
    return found


def test_a_machine_and_remotes_that_are_well(view: TopologyView) -> None:
    assert dict(_lacks(view)) == {}


def test_a_remote_that_is_gone_and_limits_of_the_kernel(
    view: TopologyView, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    view.gitops.apps_remote.rename(tmp_path / "elsewhere")
    (tmp_path / "max_user_watches").write_text("64\n")
    monkeypatch.setattr(machine, "INOTIFY", tmp_path)
    seen = ClusterSnapshot(core_ready=False)
    found = {
        each.id: each
        for each in findings(Examined(TOPOLOGY, seen, 0.0, machine=dict(_lacks(view))))
    }
    assert set(found) == {"core/demo-core", "machine/limits", "remote/apps"}
    assert "64" in found["machine/limits"].message
    assert found["machine/limits"].next.startswith("sudo sysctl fs.inotify.max_user_watches=")
    assert str(view.gitops.apps_remote) in found["remote/apps"].message
