"""Commands of `ucp` that begin as a fork of a process which has imported the project already.

To start Python and import everything takes 0.4 CPU seconds, for most commands more than what they
do. A forked one runs the entry point of the program, as a process with its own arguments,
variables, folder and streams. A worker's first run of each command is the program itself; and so is
every run whose variables would have been others while the interpreter started or imported.

This file is both: what a test imports, and what runs as the process that is forked.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

PROGRAM = (sys.executable, "-m", "k8s_ucp.cli.main")
_BY_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OPENSSL_", "TZ")
_BY_GIT = ("GIT_PYTHON_GIT_EXECUTABLE", "GIT_PYTHON_TRACE")
_FIRST_READ = (*_BY_THE_INTERPRETER, *_BY_GIT)
"""Beginnings of variables that are read elsewhere than from os.environ, or by _COPYING."""
_COPYING = ("git", "wsgiref.handlers", "zoneinfo")
"""What looks at many variables as it is imported, though nothing that it keeps of them is used: it
asks git for its version, has them ready for CGI, or finds the folder of a person's own packages."""
_LAZY = ("jinja2", "questionary", "requests", "rich.live")
"""What commands import when they need it."""
_LARGEST = 128 * 1024
"""Bytes of a request; larger ones are run by the program itself."""


def run(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `ucp` with these words, nothing to read and its output captured.

    Raises subprocess.TimeoutExpired, as subprocess.run does.
    """
    command = [*PROGRAM, *words]
    parent = parent_for(words, env)
    start = start_program if parent is None else parent.run
    return start(command, env, cwd, timeout)


def start_program(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a program, nothing to read and its output captured. Raises subprocess.TimeoutExpired."""
    return subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@dataclass
class Parent:
    """The process that is forked, as the worker sees it.

    started: those that it began with; read: those that were looked at while it imported, with
    what they were.
    """

    channel: socket.socket
    process: subprocess.Popen[bytes]
    started: Mapping[str, str]
    read: Mapping[str, str | None]
    known: set[str] = field(default_factory=set)
    """Commands that the program itself has run here."""

    def end(self) -> None:
        """It ends with its channel."""
        self.channel.close()
        with self.process:
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def fits(self, env: Mapping[str, str]) -> bool:
        """A process with these variables would have started and imported as this one did."""
        return _first_read(env) == self.started and all(
            env.get(name) == value for name, value in self.read.items()
        )

    def run(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        until = time.monotonic() + timeout
        request = json.dumps({"command": command, "env": dict(env), "cwd": str(cwd)})
        with ExitStack() as ends:
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ends.enter_context(here)
            (out, theirs), (err, their_errors) = os.pipe(), os.pipe()
            ends.callback(os.close, out)
            ends.callback(os.close, err)
            with (
                there,
                open(theirs, "wb"),
                open(their_errors, "wb"),
                open(os.devnull, "rb") as null,
            ):
                files = [there.fileno(), null.fileno(), theirs, their_errors]
                socket.send_fds(self.channel, [request.encode()], files)
            here.settimeout(60)
            pid = int(here.recv(32))
            try:
                said = _read_all([here.fileno(), out, err], until)
            except BaseException:
                _kill(pid)
                raise
        code, *texts = (b"".join(each).decode() for each in said.values())
        if not said.complete:
            if not code:
                _kill(pid)
            raise subprocess.TimeoutExpired(command, timeout, *texts)
        return subprocess.CompletedProcess(command, int(code), *texts)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class _Said(dict[int, list[bytes]]):
    """What came from each descriptor, in their order; complete: until all were at their end."""

    complete = True


def _read_all(descriptors: Sequence[int], until: float) -> _Said:
    found = _Said((each, []) for each in descriptors)
    with selectors.DefaultSelector() as selector:
        for each in descriptors:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                found.complete = False
                break
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 1 << 16)
                if chunk:
                    found[key.fd].append(chunk)
                else:
                    selector.unregister(key.fd)
    return found


_parents: list[Parent] = []


def parent_for(words: Sequence[str], env: Mapping[str, str]) -> Parent | None:
    """What to fork for these words; None where the program itself is to run."""
    if sys.platform != "linux":
        return None
    if not _parents:
        _parents.append(_start())
    parent = _parents[0]
    verb = next((each for each in words if each in _verbs()), "")
    size = sum(len(each) for pair in env.items() for each in pair) + len(" ".join(words))
    if verb not in parent.known or size > _LARGEST // 2 or not parent.fits(env):
        parent.known.add(verb)
        return None
    return parent


def _verbs() -> Mapping[str, object]:
    from k8s_ucp.cli.main import COMMANDS

    return COMMANDS


def _first_read(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_FIRST_READ)}


def _start() -> Parent:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    started = _first_read(os.environ)
    with there:
        process = subprocess.Popen(
            [sys.executable, __file__, str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # As a command's, it is no file.
            stderr=subprocess.PIPE,
        )
    here.settimeout(120)
    answer = here.recv(_LARGEST)
    here.settimeout(None)
    assert answer, process.communicate()[1].decode()
    parent = Parent(here, process, started, json.loads(answer))
    atexit.register(parent.end)
    return parent


# The other side.


def _serve(channel: socket.socket) -> list[str]:
    """Fork for each request. Returns in a process that is to be the command: its words."""
    channel.send(json.dumps(_import_everything()).encode())
    # A fork would copy each page whose objects it only counts.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        text, files, _, _ = socket.recv_fds(channel, _LARGEST, 4)
        if not text:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _begin(json.loads(text), files)
        for each in files:
            os.close(each)


def _begin(request: dict[str, object], files: list[int]) -> list[str]:
    """Fork the command, wait for it and tell its exit code; returns in the command."""
    told, *streams = files
    pid = os.fork()
    if pid:
        for each in (*streams, 1, 2):
            os.close(each)
        os.write(told, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
    for each in files:
        os.close(each)
    command, env, cwd = request["command"], request["env"], str(request["cwd"])
    assert isinstance(command, list)
    assert isinstance(env, dict)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path.insert(0, cwd)
    sys.orig_argv[:] = command
    return command


def _import_everything() -> dict[str, str | None]:
    """All that commands need; returns the variables that were looked at meanwhile."""
    for each in _COPYING:
        import_module(each)
    with _looked_at() as names:
        from k8s_ucp import plans  # noqa: F401
        from k8s_ucp.cli import main

        for each in (*(each.module for each in main.COMMANDS.values()), *_LAZY):
            import_module(each)
    return {name: os.environ.get(name) for name in sorted(names)}


@contextmanager
def _looked_at() -> Iterator[set[str]]:
    """Names of variables that are looked at meanwhile."""
    names: set[str] = set()
    kind = type(os.environ)
    get, walk = kind.__getitem__, kind.__iter__

    def noted(self: os._Environ[str], name: str) -> str:
        names.add(name)
        return get(self, name)

    def walked(self: os._Environ[str]) -> Iterator[str]:
        names.update(found := list(walk(self)))
        return iter(found)

    with patch.object(kind, "__getitem__", noted), patch.object(kind, "__iter__", walked):
        yield names


if __name__ == "__main__":
    del sys.path[0]  # The folder of this file, which is no command's.
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    from k8s_ucp.cli import main

    sys.argv = [str(main.__file__), *words[len(PROGRAM) :]]
    main.main()
