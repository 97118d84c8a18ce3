"""Findings of `ucp doctor` about this machine, whatever the state of the core cluster."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.cli.inspection.doctor import _lacks, examined
from k8s_ucp.cli.main import run
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.context import TopologyView
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceSettings
from k8s_ucp.fence.record import FenceRecord
from k8s_ucp.git.repository import Repository
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.preflight import machine
from k8s_ucp.preflight.lost_repositories import check_repositories
from k8s_ucp.reconciler.backup.backup_key import key_for
from k8s_ucp.reconciler.backup_content import PATH, Backup, dump
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace
from tests.person import git

TOPOLOGY = default("demo", ["stage"])


@pytest.fixture
def view(tmp_path: Path) -> TopologyView:
    """A view with clones whose remotes exist."""
    found = TopologyView(Workspace.at(tmp_path), TOPOLOGY)
    for clone, remote in (
        (found.gitops.core, found.gitops.core_remote),
        (found.gitops.apps, found.gitops.apps_remote),
    ):
        subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
        subprocess.run(["git", "clone", "--quiet", remote, clone], check=True, capture_output=True)
    return found


def test_healthy_machine_and_remotes_have_no_findings(view: TopologyView) -> None:
    assert dict(_lacks(view)) == {}


def test_remotes_of_a_moved_workspace_have_no_findings(view: TopologyView, tmp_path: Path) -> None:
    for clone in (view.gitops.core, view.gitops.apps):
        git(clone, "remote", "set-url", "origin", (tmp_path / "former" / clone.name).as_uri())
    assert dict(_lacks(view)) == {}


def test_unreadable_credentials_hide_no_other_finding(
    view: TopologyView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.workspace.credentials.mkdir()
    listed = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path == view.workspace.credentials:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = {each.id: each for each in findings(examined(view))}
    assert "can't be read: Permission denied" in found["credential/tracked"].message
    assert found["credential/tracked"].next.startswith("chmod u+rwx")
    assert "core/demo-core" in found


def test_missing_remote_and_low_kernel_limits_are_reported(
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


def test_backup_that_could_not_be_restored_is_reported_while_the_core_exists(
    view: TopologyView,
) -> None:
    remote = Repository(view.gitops.core_remote)
    path = view.workspace.backup_key
    key = key_for(path, lambda: False)

    def push(text: bytes) -> UcpError | None:
        commit = remote.write_commit("backup", {PATH: text}, parent=remote.resolve("main"))
        remote.git("update-ref", "refs/heads/main", commit)
        return dict(_lacks(view)).get("backup/content")

    assert push(key.close(dump(Backup()))) is None
    assert "is damaged" in str(push(b"<<<<<<< HEAD\n"))
    assert "is not a valid backup" in str(push(key.close(b"[" * 200_000)))
    path.unlink()
    assert "is missing" in str(push(key.close(dump(Backup()))))


def push(clone: Path) -> None:
    """Push an empty commit."""
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(clone, "push", "--quiet", "origin", "HEAD:main")


def test_lost_repository_is_not_replaced_by_a_new_one(view: TopologyView) -> None:
    """It would have the first versions of all apps, and Argo CD would deploy them."""
    core, apps = view.gitops.core_remote, view.gitops.apps_remote
    shutil.rmtree(apps)
    shutil.rmtree(view.gitops.apps)
    check_repositories(view)  # Nothing was published yet: a first start was interrupted.
    push(view.gitops.core)
    with pytest.raises(UcpError, match="Argo CD would deploy them") as refused:
        check_repositories(view)
    assert str(refused.value).startswith(f"{apps} is missing")
    assert f"git clone --bare CLONE {apps}" in (refused.value.next or "")
    assert "remote/lost" in dict(_lacks(view))

    subprocess.run(["git", "clone", "--quiet", "--bare", core, apps], check=True)
    check_repositories(view)
    shutil.rmtree(core)
    check_repositories(view)  # Its clone has its history.
    shutil.rmtree(view.gitops.core)
    with pytest.raises(UcpError, match=r"core\.git is missing"):
        check_repositories(view)


def test_a_branch_that_a_power_failure_emptied_is_restored_by_the_printed_command(
    view: TopologyView,
) -> None:
    push(view.gitops.core)
    file = view.gitops.core_remote / "refs/heads/main"
    before = file.read_text()
    file.write_text("")
    problem = dict(_lacks(view))["remote/lost"]
    assert "is empty, as after a power failure" in problem.message
    command = (problem.next or "").partition(": ")[2].partition(";")[0]
    subprocess.run(["sh", "-c", command], check=True)
    assert file.read_text() == before
    check_repositories(view)


def test_locks_left_in_a_repository_are_found(view: TopologyView) -> None:
    lock = view.gitops.apps / ".git" / "index.lock"
    lock.touch()
    assert dict(_lacks(view)) == {}
    os.utime(lock, (0, 0))
    problem = dict(_lacks(view))["repositories/locked"]
    assert str(lock) in problem.message
    assert (problem.next or "").endswith(f"rm {lock}")


def test_repositories_lost_while_the_topology_runs_are_not_replaced(view: TopologyView) -> None:
    shutil.rmtree(view.gitops.root)
    check_repositories(view)
    record = FenceRecord(1, None, 0.0)
    view.fence.write_settings(FenceSettings("1", "", 1.0, True, "commit", record, ""))
    with pytest.raises(UcpError, match=r"core\.git and .*apps\.git are missing"):
        check_repositories(view)
    view.fence.forget()  # As `ucp stop` does.
    check_repositories(view)


def test_running_start_is_noted_besides_the_findings(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace.at(tmp_path)
    remember(workspace, "demo", topology_text(TOPOLOGY))
    journal = Journal(workspace.state("demo").journal, "start")
    doctor = ["--workspace", str(tmp_path), "doctor"]
    with journal.step("Start the core cluster", "start-core"):
        assert run(doctor) == 1
    said = capsys.readouterr()
    assert said.err.startswith("note: `ucp start` of ")
    assert "is running (0 of 1 steps done, in: Start the core cluster)" in said.err
    assert "core cluster demo-core is not responding" in said.out
    journal.end("done")
    assert run(doctor) == 1
    assert "note: " not in capsys.readouterr().err
