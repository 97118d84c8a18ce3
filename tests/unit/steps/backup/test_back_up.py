"""The backup of `ucp stop`, with an unresponsive core and with a repository that rejects pushes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.clusters import local
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import make_clone, make_remote
from k8s_ucp.git.repository import Repository
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.steps.backup import back_up
from k8s_ucp.steps.backup.back_up import back_up_before_stop
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


def context(tmp_path: Path, *, answers: bool, core: str = "embedded") -> StartContext:
    made = StartContext(workspace=Workspace.at(tmp_path), topology=demo(core={"provider": core}))
    (made.gitops.core / ".git").mkdir(parents=True)
    vars(made)["kube"] = SimpleNamespace(ready=lambda: answers)
    return made


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores whose containers can be queried are covered by test_silent_core.py."""
    monkeypatch.setattr(local, "used_providers", lambda *_: {})


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[CoreState]:
    asked: list[CoreState] = []

    def refuse(_: StartContext, state: CoreState) -> str:
        asked.append(state)
        raise UcpError("git push: no way to the host\nand more", next="look at the network")

    monkeypatch.setattr(back_up, "write_backup", refuse)
    return asked


def test_a_stop_does_not_need_the_core_if_it_is_absent(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    back_up_before_stop.run(context(tmp_path, answers=False, core="kind"), said.append)
    missing = StartContext(workspace=Workspace.at(tmp_path), topology=demo())
    back_up_before_stop.run(missing, said.append)
    assert (offline, said) == ([], [])


def test_an_unresponsive_core_that_keeps_its_data_is_stopped_with_a_warning(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    silent = context(tmp_path, answers=False)
    silent.state.make()
    silent.state.kubeconfig("demo-core").write_text("{}")
    back_up_before_stop.run(silent, said.append)
    assert (offline, said) == ([], ["not backed up: demo-core is not responding"])


def test_a_core_that_keeps_its_data_is_stopped_with_a_warning_if_the_backup_fails(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    back_up_before_stop.run(context(tmp_path, answers=True), said.append)
    assert said == ["not backed up: git push: no way to the host"]


def test_a_core_that_would_lose_its_data_is_not_stopped_if_the_backup_fails(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    with pytest.raises(UcpError) as caught:
        back_up_before_stop.run(context(tmp_path, answers=True, core="kind"), said.append)
    assert caught.value.message.startswith("stopping would lose data of the core cluster: git push")
    assert caught.value.next == "look at the network"


def test_data_is_deleted_without_a_backup_only_with_abandon_and_the_cores_name(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    made = context(tmp_path, answers=True)
    made.teardown.delete_data = True
    with pytest.raises(UcpError) as caught:
        back_up_before_stop.run(made, said.append)
    assert caught.value.message.startswith("--delete-data would lose what is not backed up: git")
    assert caught.value.next == (
        "look at the network; or accept the loss: ucp stop --delete-data --abandon demo-core"
    )
    made.teardown.abandon = frozenset(["demo-core"])
    back_up_before_stop.run(made, said.append)
    assert said == ["not backed up: git push: no way to the host"]


def test_a_later_stop_does_not_delete_data_that_an_earlier_one_failed_to_back_up(
    tmp_path: Path, offline: list[Any], said: list[str]
) -> None:
    running = context(tmp_path, answers=True)
    running.state.make()
    running.state.kubeconfig("demo-core").write_text("{}")
    back_up_before_stop.run(running, said.append)

    vars(running)["kube"] = SimpleNamespace(ready=lambda: False)
    back_up_before_stop.run(running, said.append)
    running.teardown.delete_data = True
    with pytest.raises(UcpError) as caught:
        back_up_before_stop.run(running, said.append)
    assert caught.value.message == (
        "--delete-data would lose what is not backed up: demo-core is not responding, and the last "
        "backup failed: git push: no way to the host"
    )
    assert caught.value.next == (
        "ucp start, which backs it up; or accept the loss: "
        "ucp stop --delete-data --abandon demo-core"
    )
    running.teardown.abandon = frozenset(["demo-core"])
    back_up_before_stop.run(running, said.append)
    running.teardown.abandon, running.teardown.destroys = frozenset(), True
    back_up_before_stop.run(running, said.append)
    silent = "not backed up: demo-core is not responding"
    lost = f"{silent}; what it made in its last seconds may be lost"
    assert said[1:] == [silent, lost, silent]


def test_a_new_backup_is_reported_with_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(back_up, "write_backup", lambda *_: "backup/state.age, commit 12345678")
    back_up_before_stop.run(context(tmp_path, answers=True), said.append)
    assert said == ["backup/state.age, commit 12345678"]


@pytest.mark.parametrize(("core", "left"), [("kind", ["k8s-ucp-restored"]), ("embedded", [])])
def test_a_core_being_deleted_is_no_longer_marked_as_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: str, left: list[str]
) -> None:
    """Otherwise an interrupted stop that is run again would empty the backup."""
    monkeypatch.setattr(back_up, "write_backup", lambda *_: "")
    made = context(tmp_path, answers=True, core=core)
    deleted: list[str] = []
    vars(made)["kube"].delete = lambda kind, name, namespace: deleted.append(name)
    back_up_before_stop.run(made, lambda _: None)
    assert deleted == left


def test_a_stop_in_a_moved_workspace_backs_up_to_its_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another workspace may be in its former place, with a backup of its own."""
    monkeypatch.setattr(back_up, "write_backup", lambda *_: "")
    there = Workspace.at(tmp_path / "former").gitops("demo")
    make_clone(there.core, make_remote(there.core_remote).folder.as_uri())
    (tmp_path / "former").rename(tmp_path / "moved")
    made = StartContext(workspace=Workspace.at(tmp_path / "moved"), topology=demo())
    vars(made)["kube"] = SimpleNamespace(ready=lambda: True)

    back_up_before_stop.run(made, lambda _: None)

    assert Repository(made.gitops.core).url() == made.gitops.core_remote.as_uri()
