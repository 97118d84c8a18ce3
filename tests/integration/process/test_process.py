"""Running other programs: results, deadlines, and never affecting a foreign process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing
from k8s_ucp.process import (
    ProcessIdentity,
    RunningPrograms,
    identify,
    is_marked,
    is_running,
    listener,
    listeners,
    marked,
    run,
    spawn,
    terminate,
    wait_exited,
    working_in,
)

ENV = {"PATH": os.environ["PATH"]}


def sleeper(tmp_path: Path) -> ProcessIdentity:
    return spawn(["sleep", "60"], env=ENV, cwd=tmp_path, log=tmp_path / "sleep.log")


def test_run_returns_stdout_and_passes_on_both_streams() -> None:
    heard: list[str] = []
    out = run(
        ["sh", "-c", "echo one; echo two >&2; cat"], timeout=60, stdin="three", on_line=heard.append
    )
    assert out == "one\nthree"
    assert sorted(heard) == ["one", "three", "two"]


def test_failing_program_is_reported_with_arguments_code_and_output() -> None:
    with pytest.raises(CommandFailed) as failure:
        run(["sh", "-c", "echo reason >&2; exit 7"], timeout=60)
    assert failure.value.code == 7
    assert "reason" in failure.value.output
    assert failure.value.argv[0] == "sh"


@pytest.mark.parametrize(
    ("argument", "reason"), [("a\0b", "null byte"), ("a" * 4_000_000, "Argument list too long")]
)
def test_an_argument_that_can_not_be_passed_on_is_a_failure(argument: str, reason: str) -> None:
    with pytest.raises(CommandFailed, match=reason) as failure:
        run(["echo", argument], timeout=20)
    assert len(str(failure.value)) < 500


@pytest.mark.parametrize("lines", [100, 1_000_000])
def test_a_program_that_prints_too_much_is_stopped(lines: int) -> None:
    with pytest.raises(CommandFailed, match="printed more than 99 characters"):
        run(["seq", str(lines)], timeout=20, output=99)
    assert run(["seq", "9"], timeout=60, output=99) == "".join(f"{each}\n" for each in range(1, 10))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts all memory")
def test_a_program_gets_no_more_memory_than_it_may_have() -> None:
    words = [sys.executable, "-c", "len(bytes(400_000_000)); print('had it')"]
    assert run(words, timeout=20) == "had it\n"
    with pytest.raises(CommandFailed, match="MemoryError"):
        run(words, timeout=20, memory=200_000_000)
    crash = "echo 'fatal error: runtime: cannot allocate memory' >&2; seq 500 >&2; exit 2"
    with pytest.raises(CommandFailed, match="it needs more than 200 MB of memory"):
        run(["sh", "-c", crash], timeout=60, memory=200_000_000)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit exists on Linux only")
def test_memory_in_place_of_reserved_addresses_is_limited() -> None:
    """Go's programs allocate like this, and Linux since 6.12 doesn't check it."""
    reserve_and_use = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
size, private = ctypes.c_size_t(400_000_000), 0x22
place = libc.mmap(None, size, 0, private, -1, ctypes.c_long(0))
given = libc.mmap(ctypes.c_void_p(place), size, 3, private | 0x10, -1, ctypes.c_long(0))
if given != place:
    raise SystemExit("fatal error: no memory, on an older kernel")
time.sleep(20)
"""
    with pytest.raises(CommandFailed, match="needs more than 200 MB of memory"):
        run([sys.executable, "-c", reserve_and_use], timeout=20, memory=200_000_000)


def test_missing_program_is_named() -> None:
    with pytest.raises(ProgramMissing, match="no-such-program"):
        run(["no-such-program"], timeout=60)


def test_deadline_kills_the_whole_process_group(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(DeadlineExceeded):
        run(["sh", "-c", f"sleep 60 & echo $! > '{note}'; wait"], timeout=1)
    child = identify(int(note.read_text()))
    assert child is None or wait_exited(child, 3)


def test_program_gets_only_the_given_environment() -> None:
    assert run(["/usr/bin/env"], timeout=60, env={"ONE": "1"}) == "ONE=1\n"


def test_spawned_process_is_recognized_and_ended(tmp_path: Path) -> None:
    found = sleeper(tmp_path)
    assert is_running(found)
    assert identify(found.pid) == found
    assert (tmp_path / "sleep.log").stat().st_mode & 0o777 == 0o600
    terminate(found, grace=5)
    assert not is_running(found)


@pytest.mark.parametrize(
    "difference",
    [
        {"started_at": 1.0, "start": ""},
        {"start": "another boot:1"},
        {"executable": "/usr/bin/something-else", "start": ""},
    ],
)
def test_foreign_process_with_the_same_pid_is_left_alone(
    tmp_path: Path, difference: dict[str, object]
) -> None:
    stranger = sleeper(tmp_path)
    try:
        terminate(dataclasses.replace(stranger, **difference), grace=0.1)  # type: ignore[arg-type]
        assert is_running(stranger)
    finally:
        terminate(stranger, grace=5)


def test_process_that_has_executed_another_program_since_is_ended(tmp_path: Path) -> None:
    """As a component does right after its start, when its supervisord may be killed."""
    ready = tmp_path / "ready"
    words = ["sh", "-c", f"until test -e '{ready}'; do sleep 0.01; done; exec sleep 60"]
    found = spawn(words, env=ENV, cwd=tmp_path, log=tmp_path / "log")
    ready.touch()
    while (now := identify(found.pid)) and now.executable == found.executable:
        time.sleep(0.01)
    terminate(found, grace=5)
    assert identify(found.pid) is None


def test_process_is_recognized_after_a_change_of_the_clock(tmp_path: Path) -> None:
    """Its start time is relative to the boot time, which moves with the clock."""
    found = sleeper(tmp_path)
    try:
        before_the_step = dataclasses.replace(found, started_at=found.started_at - 3600)
        assert is_running(before_the_step)
    finally:
        terminate(found, grace=5)


def test_record_of_an_older_version_is_recognized(tmp_path: Path) -> None:
    found = sleeper(tmp_path)
    record = {"pid": found.pid, "executable": found.executable, "started_at": found.started_at}
    assert is_running(ProcessIdentity(**record))  # type: ignore[arg-type]
    terminate(ProcessIdentity(**record), grace=5)  # type: ignore[arg-type]
    assert not is_running(found)


def test_output_that_is_not_utf_8_is_shown_with_replacements() -> None:
    assert run(["printf", r"caf\351\n"], timeout=60) == "caf\N{REPLACEMENT CHARACTER}\n"


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stubborn = spawn(
        ["sh", "-c", f"trap '' TERM; : > '{ready}'; while :; do sleep 0.1; done"],
        env=ENV,
        cwd=tmp_path,
        log=tmp_path / "log",
    )
    while not ready.exists():
        time.sleep(0.01)
    terminate(stubborn, grace=0.3)
    assert not is_running(stubborn)


def test_listeners_have_address_and_port_of_several_processes(tmp_path: Path) -> None:
    program = (
        "import socket, sys, time\n"
        "held = []\n"
        "for host in sys.argv[2:]:\n"
        "    six = ':' in host\n"
        "    held.append(socket.socket(socket.AF_INET6 if six else socket.AF_INET))\n"
        "    if six: held[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host == '::1')\n"
        "    held[-1].bind((host, 0))\n"
        "    held[-1].listen()\n"
        "open(sys.argv[1], 'w').write(' '.join(str(each.getsockname()[1]) for each in held))\n"
        "time.sleep(600)\n"
    )
    hosts = ["127.0.0.1", "0.0.0.0"]
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        hosts += ["::1", "::ffff:127.0.0.1"]
    told = tmp_path / "told"
    other = spawn(
        [sys.executable, "-c", program, str(told), *hosts],
        env=ENV,
        cwd=tmp_path,
        log=tmp_path / "log",
    )
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            while not (told.exists() and len(told.read_text().split()) == len(hosts)):
                assert is_running(other), (tmp_path / "log").read_text()
                time.sleep(0.01)
            seen = [each.removeprefix("::ffff:") for each in hosts]
            theirs = set(zip(seen, map(int, told.read_text().split()), strict=True))
            mine = ("127.0.0.1", server.getsockname()[1])
            assert set(listeners(other.pid)) == theirs
            assert {mine, *theirs} <= set(listeners(os.getpid(), other.pid))
            found = listener(next(iter(theirs))[1])
            assert found and found[1] == other.pid and "python" in found[0]
    finally:
        terminate(other, grace=0)
    assert listeners(other.pid) == []


def test_programs_of_other_threads_are_ended_together(tmp_path: Path) -> None:
    programs = RunningPrograms()
    ended: list[str] = []

    def wait_for_it() -> None:
        try:
            run(["sh", "-c", "sleep 60 & wait"], timeout=60, cwd=tmp_path, programs=programs)
        except CommandFailed as error:
            ended.append(str(error))

    threads = [threading.Thread(target=wait_for_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 60
    while len(working_in(tmp_path)) < 6 and time.monotonic() < until:
        time.sleep(0.02)
    programs.end()
    for thread in threads:
        thread.join(timeout=60)
    assert len(ended) == 3
    with pytest.raises(CommandFailed):
        run(["sleep", "60"], timeout=60, programs=programs)
    until = time.monotonic() + 60
    while working_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.02)
    assert working_in(tmp_path) == []


def test_working_in_finds_only_processes_below_the_folder(tmp_path: Path) -> None:
    inside, beside = tmp_path / "in", tmp_path / "inside-not"
    inside.mkdir()
    beside.mkdir()
    mine, other = sleeper(inside), sleeper(beside)
    try:
        assert working_in(inside) == [mine]
    finally:
        terminate(mine, grace=1)
        terminate(other, grace=1)


def test_program_without_input_reads_end_of_file() -> None:
    assert run(["cat"], timeout=60) == ""


def test_process_is_recognized_by_its_environment(tmp_path: Path) -> None:
    found = spawn(
        ["sleep", "60"], env={**ENV, "MARK": str(tmp_path)}, cwd=tmp_path, log=tmp_path / "log"
    )
    try:
        assert is_marked(found.pid, "MARK", str(tmp_path))
        assert [identity for identity, _ in marked(("MARK", str(tmp_path)))] == [found]
        assert not is_marked(found.pid, "MARK", "another")
        assert not is_marked(os.getpid(), "MARK", str(tmp_path))
    finally:
        terminate(found, grace=5)
    assert not is_marked(found.pid, "MARK", str(tmp_path))
