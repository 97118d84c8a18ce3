"""Host placement with a real supervisord: starts, restarts, crashes, refusals and stops."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.supervisor_client import SupervisorClient
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import StateFolder
from tests.control_planes import eventually

from .conftest import python_program

SLEEP = "import time\nwhile True: time.sleep(1)"
STUBBORN = "import signal;signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP.replace(
    "import time\n", "import time;print('up', flush=True)\n"
)


def pid_of(placement: HostPlacement, name: str) -> int:
    state = placement.states().get(name)
    return state.pid if state else 0


def run(placement: HostPlacement, *names: str, code: str = SLEEP) -> None:
    placement.ensure_running()
    placement.start([python_program(name, code, placement.state.root) for name in names])
    eventually(lambda: all(pid_of(placement, name) for name in names))


def processes_of(placement: HostPlacement) -> list[psutil.Process]:
    """Processes with this placement's socket in their environment, and supervisord itself."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            url = each.environ().get("SUPERVISOR_SERVER_URL", "")
            words = " ".join(each.cmdline())
            if str(placement.runtime) in url or f"-c {placement.state.root}" in words:
                found.append(each)
    return found


def await_processes(placement: HostPlacement, count: int) -> None:
    """Wait until so many run; the error tells which ones do."""
    try:
        eventually(lambda: len(processes_of(placement)) == count)
    except AssertionError as error:
        found = [
            each.as_dict(["pid", "ppid", "status", "cmdline"]) for each in processes_of(placement)
        ]
        raise AssertionError(f"{found} instead of {count}; {placement.states()}") from error


def runs(process: psutil.Process) -> bool:
    """Whether it runs; an orphan that ended stays a zombie where PID 1 doesn't reap it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_programs_get_only_their_own_environment_which_no_argument_shows(
    placement: HostPlacement, tmp_path: Path
) -> None:
    out = tmp_path / "seen"
    code = f"import os;open({str(out)!r},'w').write(os.getcwd()+'|'+os.environ['V']);" + SLEEP
    nasty = 'it\'s "50%" ; # $HOME'
    placement.ensure_running()
    placement.start([python_program("demo", code, placement.state.root, V=nasty)])
    eventually(out.exists)
    eventually(out.read_text)
    assert out.read_text() == f"{placement.state.root}|{nasty}"
    running = psutil.Process(pid_of(placement, "demo"))
    assert "UCP_TEST_CANARY" not in running.environ()
    assert nasty not in " ".join(running.cmdline())


def test_programs_inherit_settings_for_git_and_certificates(
    placement: HostPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argo CD and the backup keeper may need a private CA, or the user's SSH key."""
    given = {
        "GIT_SSL_CAINFO": "/etc/company ca.pem",
        "GIT_SSH_COMMAND": "ssh -i '/home/me/key' -o \"IdentitiesOnly yes\"",
        "XDG_CONFIG_HOME": "/home/me/.settings",
        "REQUESTS_CA_BUNDLE": "/etc/company ca.pem",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    run(placement, "one")
    process = psutil.Process(pid_of(placement, "one"))
    # Until then, it is the script that reads the settings.
    eventually(lambda: SLEEP in process.cmdline())
    found = process.environ()
    assert {name: found.get(name) for name in given} == given


def test_a_second_start_changes_nothing(placement: HostPlacement) -> None:
    run(placement, "one", "two")
    before = placement.states()
    assert placement.ensure_running() is False
    programs = [python_program(name, SLEEP, placement.state.root) for name in ("one", "two")]
    assert placement.start(programs) == []
    assert {n: s.pid for n, s in placement.states().items()} == {
        n: s.pid for n, s in before.items()
    }


def test_programs_are_added_and_changed_without_restarting_others(placement: HostPlacement) -> None:
    run(placement, "one", "two")
    one, two = pid_of(placement, "one"), pid_of(placement, "two")
    changed = python_program("two", SLEEP, placement.state.root, NEW="1")
    added = python_program("three", SLEEP, placement.state.root)
    assert placement.start([changed, added]) == ["three", "two"]
    eventually(lambda: pid_of(placement, "three"))
    assert pid_of(placement, "one") == one
    assert pid_of(placement, "two") not in (0, two)
    placement.remove(["one"])
    assert set(placement.states()) == {"two", "three"}
    assert not psutil.pid_exists(one)


def test_a_killed_program_is_restarted(placement: HostPlacement) -> None:
    run(placement, "one")
    eventually(lambda: placement.states()["one"].state == "RUNNING")
    killed = pid_of(placement, "one")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: pid_of(placement, "one") not in (0, killed))


def test_a_program_that_fails_to_start_is_given_up_and_can_be_retried(
    placement: HostPlacement,
) -> None:
    placement.ensure_running()
    placement.start([python_program("broken", "raise SystemExit('why')", placement.state.root)])
    eventually(lambda: placement.states()["broken"].state == "FATAL")
    assert "why" in placement.log("broken").read_text()
    assert placement.restart_given_up() == ["broken"]
    assert placement.states()["broken"].state != "FATAL"


def test_restart_gives_a_new_process(placement: HostPlacement) -> None:
    run(placement, "one")
    before = pid_of(placement, "one")
    placement.restart("one")
    eventually(lambda: pid_of(placement, "one") not in (0, before))


def test_stop_leaves_no_process_no_socket_no_secret(placement: HostPlacement) -> None:
    run(placement, "one", "stubborn", code=STUBBORN)
    eventually(lambda: "up" in placement.log("stubborn").read_text())
    await_processes(placement, 3)
    placement.stop_all()
    assert processes_of(placement) == []
    assert not placement.runtime.exists()
    assert sorted(each.name for each in placement.state.components.iterdir()) == [
        *("lock", "programs", "stopping")
    ]
    assert not list((placement.state.components / "programs").iterdir())
    placement.stop_all()
    assert placement.states() == {}


def test_stop_needs_no_free_inode(
    placement: HostPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`df -h` shows free space then, but no file can be created."""

    def full(path: Path, _: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    run(placement, "one")
    with monkeypatch.context() as disk:
        disk.setattr("k8s_ucp.components.host.placement.write_private_file", full)
        placement.stop_all()
        placement.stop_all()
    assert processes_of(placement) == []
    assert placement.is_stopping()
    run(placement, "one")
    assert not placement.is_stopping()


def test_files_are_private(placement: HostPlacement) -> None:
    run(placement, "one")
    folders = [placement.runtime, placement.runtime.parent, placement.state.components]
    for path in (*folders, placement.state.components / "programs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    files = [*placement.state.components.rglob("*"), *placement.state.logs.iterdir()]
    for path in [
        *(each for each in files if each.is_file()),
        placement.runtime / "supervisor.sock",
    ]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_killed_supervisord_is_replaced_and_nothing_runs_twice(placement: HostPlacement) -> None:
    run(placement, "one", "two")
    supervisor = placement.supervisor()
    assert supervisor
    os.kill(supervisor.pid, signal.SIGKILL)
    eventually(lambda: placement.supervisor() is None)
    assert placement.revive() is True
    eventually(lambda: pid_of(placement, "one") and pid_of(placement, "two"))
    await_processes(placement, 3)
    assert placement.revive() is False


def test_a_start_after_all_processes_were_killed_begins_without_programs(
    placement: HostPlacement,
) -> None:
    run(placement, "one")
    for each in processes_of(placement):
        each.kill()
    eventually(lambda: not processes_of(placement))
    assert placement.ensure_running() is True
    assert placement.states() == {}
    run(placement, "two")
    await_processes(placement, 2)


def test_a_deleted_socket_duplicates_no_program(placement: HostPlacement) -> None:
    run(placement, "one")
    (placement.runtime / "supervisor.sock").unlink()
    assert placement.is_running() is False
    assert placement.revive() is True
    eventually(lambda: pid_of(placement, "one"))
    await_processes(placement, 2)


def test_stop_works_after_the_state_folder_was_deleted(placement: HostPlacement) -> None:
    run(placement, "one")
    running = processes_of(placement)
    shutil.rmtree(placement.state.root)
    placement.stop_all()
    assert not any(each.is_running() for each in running)
    assert not placement.runtime.exists()


def test_a_start_works_after_the_state_folder_was_deleted(placement: HostPlacement) -> None:
    run(placement, "one")
    before = processes_of(placement)
    shutil.rmtree(placement.state.root)
    placement.state.make()
    run(placement, "one")
    assert not any(each.is_running() for each in before)
    await_processes(placement, 2)


def test_a_supervisord_that_is_shutting_down_reports_no_programs(placement: HostPlacement) -> None:
    """If the state folder was deleted, one step of a start stops it while another queries it."""
    run(placement, "stubborn", code=STUBBORN)
    eventually(lambda: "up" in placement.log("stubborn").read_text())
    with SupervisorClient(placement.runtime / "supervisor.sock") as control:
        control.shut_down()
        eventually(lambda: placement.states() == {})
    assert any(map(runs, processes_of(placement))), "it waits for a program that does not end"
    placement.stop_all(grace=0.1)
    assert not any(map(runs, processes_of(placement)))


def test_programs_keep_running_if_no_new_socket_can_be_created(placement: HostPlacement) -> None:
    """A login's folder for sockets is deleted with the login, but the programs are still needed."""
    run(placement, "one")
    one = pid_of(placement, "one")
    supervisor = placement.supervisor()
    shutil.rmtree(placement.runtime.parent)
    placement.runtime.parent.write_text("nobody makes a folder here")
    for attempt in (placement.revive, placement.ensure_running):
        with pytest.raises(UcpError, match="for sockets"):
            attempt()
    assert placement.supervisor() == supervisor
    assert psutil.pid_exists(one)
    placement.runtime.parent.unlink()
    assert placement.revive() is True
    eventually(lambda: pid_of(placement, "one") not in (0, one))
    await_processes(placement, 2)


def test_stop_finds_processes_with_their_socket_in_another_folder(
    placement: HostPlacement, short_folder: Path
) -> None:
    """`ucp stop` under cron or sudo once used another folder."""
    run(placement, "one", "two")
    before = processes_of(placement)
    (placement.state.components / "supervisord.conf").unlink()
    elsewhere = HostPlacement(placement.state, short_folder / "elsewhere" / "demo")
    assert len(elsewhere.remains()) == 3
    elsewhere.stop_all()
    assert not any(map(runs, before))
    assert elsewhere.remains() == []


@pytest.mark.parametrize("logged_out", [False, True])
def test_processes_of_an_older_version_are_replaced(
    placement: HostPlacement,
    short_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    logged_out: bool,
) -> None:
    """It used a login's folder for sockets, and only the socket marked its programs."""
    login = HostPlacement(placement.state, short_folder / "login" / "demo")
    with monkeypatch.context() as older:
        older.setattr("k8s_ucp.components.host.supervisord._MARK", "UCP_TEST_NOTHING")
        run(login, "one", "two")
    before = processes_of(login)
    if logged_out:
        shutil.rmtree(login.runtime.parent)
    assert len(placement.remains()) == 3
    assert placement.ensure_running() is True
    run(placement, "one")
    assert not any(map(runs, before))
    assert len(placement.remains()) == 2


def test_stop_kills_a_supervisord_that_hangs(
    placement: HostPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_ucp.components.host.supervisor_client.CALL_SECONDS", 0.5)
    run(placement, "one")
    supervisor = placement.supervisor()
    assert supervisor
    os.kill(supervisor.pid, signal.SIGSTOP)
    placement.stop_all()
    assert processes_of(placement) == []


def test_nothing_is_restarted_during_or_after_a_stop(placement: HostPlacement) -> None:
    run(placement, "one")
    placement.stop_all()
    assert placement.is_stopping()
    assert placement.revive() is False
    assert processes_of(placement) == []
    run(placement, "one")
    assert not placement.is_stopping()


def test_stop_ends_the_programs_of_a_folder_that_was_moved_while_they_ran(
    placement: HostPlacement, short_folder: Path
) -> None:
    """They have the mark of the former place, where another workspace may be by now."""
    run(placement, "one", "two")

    def sleeping() -> list[psutil.Process]:
        return [each for each in processes_of(placement) if SLEEP in each.cmdline()]

    # They are started by a script, which has to be in its place until then.
    eventually(lambda: len(sleeping()) == 2)
    before = processes_of(placement)
    environment = {"UCP_SUPERVISOR": placement.state.identifier}
    other = subprocess.Popen([sys.executable, "-c", SLEEP], env=environment)
    root = placement.state.root.rename(placement.state.root.with_name("moved"))
    moved = HostPlacement(StateFolder(root), short_folder / "run" / "moved")
    pids = {each.pid for each in before}
    try:
        eventually(lambda: {each.pid for each in moved.remains()} == pids)
        moved.stop_all()
        assert not any(map(runs, before))
        assert moved.remains() == []
        assert other.poll() is None
    finally:
        moved.stop_all()
        other.kill()
        other.wait()


def test_stop_ends_the_programs_of_a_moved_folder_that_was_deleted(
    placement: HostPlacement, short_folder: Path
) -> None:
    """Neither a record nor a mark leads to them, but where their folder was when it was deleted."""
    run(placement, "one")
    eventually(lambda: any(SLEEP in each.cmdline() for each in processes_of(placement)))
    before = processes_of(placement)
    root = placement.state.root.rename(placement.state.root.with_name("moved"))
    shutil.rmtree(root)
    moved = HostPlacement(StateFolder(root), short_folder / "run" / "moved")
    try:
        assert {each.pid for each in moved.remains()} == {each.pid for each in before}
        moved.stop_all()
        assert not any(map(runs, before))
        assert moved.remains() == []
    finally:
        for each in filter(runs, before):
            each.kill()


def test_a_new_workspace_in_the_place_of_a_moved_one_leaves_its_programs_alone(
    placement: HostPlacement,
) -> None:
    """Both have the same socket and the same mark, which depend on the path."""
    run(placement, "one", "two")
    eventually(lambda: sum(SLEEP in each.cmdline() for each in processes_of(placement)) == 2)
    before = processes_of(placement)
    workspace = placement.state.root.parents[1]
    there = workspace.rename(workspace.with_name("moved"))
    moved = HostPlacement(StateFolder(there / ".ucp" / "demo"), placement.runtime.with_name("new"))
    placement.state.make()
    try:
        with pytest.raises(UcpError, match=f"moved from here to {there}") as refused:
            placement.ensure_running()
        assert f"cd {there} && ucp stop" in str(refused.value.next)
        assert (placement.states(), placement.remains()) == ({}, [])
        placement.stop_all()
        assert all(map(runs, before))
        supervisor = moved.supervisor()
        assert supervisor
        # Without their socket, and without the supervisord that proves where they are.
        (placement.runtime / "supervisor.sock").unlink()
        assert placement.ensure_running()
        os.kill(supervisor.pid, signal.SIGKILL)
        eventually(lambda: moved.supervisor() is None)
        placement.stop_all()
        assert all(runs(each) for each in before if each.pid != supervisor.pid)
        moved.stop_all()
        assert moved.remains() == []
    finally:
        for each in before:
            with contextlib.suppress(psutil.Error):
                each.kill()


def test_copied_state_folder_does_not_stop_the_original(
    placement: HostPlacement, short_folder: Path
) -> None:
    """Its record names the original's supervisord, which runs."""
    run(placement, "one")
    before = placement.supervisor(), pid_of(placement, "one")
    root = placement.state.root.with_name("copy")
    shutil.copytree(placement.state.root, root)
    copy = HostPlacement(StateFolder(root), short_folder / "run" / "copy")
    assert (copy.supervisor(), copy.remains()) == (None, [])
    copy.stop_all()
    try:
        assert copy.ensure_running()
    finally:
        copy.stop_all()
    assert (placement.supervisor(), pid_of(placement, "one")) == before


def test_a_process_in_its_own_session_is_not_stopped_as_an_orphan(
    placement: HostPlacement, tmp_path: Path
) -> None:
    """The reconciler starts control planes this way, and they must outlive it."""
    note = tmp_path / "pid"
    code = (
        "import subprocess,sys;"
        f"p=subprocess.Popen([sys.executable,'-c',{SLEEP!r}],start_new_session=True);"
        f"open({str(note)!r},'w').write(str(p.pid));" + SLEEP
    )
    run(placement, "parent", code=code)
    eventually(lambda: note.exists() and note.read_text())
    plane = psutil.Process(int(note.read_text()))
    try:
        supervisor = placement.supervisor()
        assert supervisor
        os.kill(supervisor.pid, signal.SIGKILL)
        eventually(lambda: placement.supervisor() is None)
        placement.revive()
        placement.stop_all()
        assert plane.is_running()
    finally:
        plane.kill()
        for each in processes_of(placement):
            each.kill()


def test_a_stale_socket_is_replaced(placement: HostPlacement) -> None:
    placement.runtime.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(placement.runtime / "supervisor.sock"))
    run(placement, "one")


def test_a_foreign_process_on_our_socket_is_named_and_left_alone(placement: HostPlacement) -> None:
    placement.runtime.mkdir(parents=True)
    path = placement.runtime / "supervisor.sock"
    code = (
        "import socket;s=socket.socket(socket.AF_UNIX);"
        f"s.bind({str(path)!r});s.listen();print('up',flush=True)\n"
        "while True: c,_=s.accept(); c.close()"
    )
    stranger = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert stranger.stdout and stranger.stdout.readline()
        with pytest.raises(
            UcpError, match=f"process {stranger.pid} .*not ucp's supervisord"
        ) as error:
            placement.ensure_running()
        assert error.value.next and str(path) in error.value.next
        with pytest.raises(UcpError):
            placement.stop_all()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        if stranger.stdout:
            stranger.stdout.close()


def test_a_supervisord_of_another_user_is_not_asked(
    placement: HostPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since a reboot, anyone could have created its folder in /tmp, and name PIDs to be ended."""
    run(placement, "one")
    user = os.getuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: user + 1)
        assert not placement.is_running() and not placement.states()
    assert placement.is_running() and placement.states()


def test_a_file_in_place_of_the_socket_is_named_and_kept(placement: HostPlacement) -> None:
    placement.runtime.mkdir(parents=True)
    path = placement.runtime / "supervisor.sock"
    path.write_text("mine")
    with pytest.raises(UcpError, match="not a socket"):
        placement.ensure_running()
    assert path.read_text() == "mine"
    path.unlink()


def test_two_concurrent_starts_share_one_supervisord(placement: HostPlacement) -> None:
    threads = [threading.Thread(target=run, args=(placement, name)) for name in ("one", "two")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # A process that was only just started has no readable environment yet.
    eventually(lambda: len(processes_of(placement)) >= 3)
    await_processes(placement, 3)


def test_logs_are_rotated(placement: HostPlacement, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("k8s_ucp.components.host.program.LOG_BYTES", 2000)
    code = "import time\nwhile True: print('x'*99, flush=True); time.sleep(0.002)"
    run(placement, "chatty", code=code)
    eventually(lambda: placement.log("chatty").with_name("chatty.log.2").exists())
    placement.remove(["chatty"])
    logs = list(placement.state.logs.glob("chatty.log*"))
    assert len(logs) == 3
    assert all(each.stat().st_size < 100_000 for each in logs)
