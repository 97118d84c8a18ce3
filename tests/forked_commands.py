"""Runs commands of `ucp` as forks of a process that has already imported the project.

Starting Python and importing everything takes 0.4 CPU seconds, more than most commands need for
their work. A fork runs the program's entry point as a process with its own arguments, environment,
folder and streams. The real program is run for a worker's first run of each command, and for every
run whose variables would have changed how the interpreter starts or imports.

This file contains both sides: the functions that tests import, and the program that is forked.
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
"""Prefixes of variables that are read by other means than os.environ, or by _COPYING."""
_COPYING = ("git", "wsgiref.handlers", "zoneinfo")
"""Modules that read many variables while they are imported, although none of the values is used:
they ask git for its version, prepare for CGI, or find the folder of user site packages.
"""
_LAZY = ("jinja2", "questionary", "requests", "rich.live")
"""Modules that commands import when they need them."""
_LARGEST = 128 * 1024
"""Bytes of a request; the program itself runs larger ones."""


def run(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `ucp` with these arguments, empty standard input and captured output.

    Raises subprocess.TimeoutExpired, as subprocess.run does.
    """
    command = [*PROGRAM, *words]
    parent = parent_for(words, env)
    start = start_program if parent is None else parent.run
    return start(command, env, cwd, timeout)


def start_program(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a program with empty input and captured output. Raises subprocess.TimeoutExpired."""
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
    """The process that is forked, seen from the worker.

    started: its variables at its start. read: variables that were read during its imports, with
    their values.
    """

    channel: socket.socket
    process: subprocess.Popen[bytes]
    started: Mapping[str, str]
    read: Mapping[str, str | None]
    known: set[str] = field(default_factory=set)
    """Commands whose first run here was a run of the program itself."""

    def end(self) -> None:
        """End the process by closing its channel."""
        self.channel.close()
        with self.process:
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def fits(self, env: Mapping[str, str]) -> bool:
        """Return whether a process with these variables would have imported in the same way."""
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
    """Output of each descriptor in order; complete: all of them reached end of file."""

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
    """Return the process to fork for these arguments; None if the program itself must run."""
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
            stdout=subprocess.PIPE,  # A pipe, as for a command: not a file.
            stderr=subprocess.PIPE,
        )
    here.settimeout(120)
    answer = here.recv(_LARGEST)
    here.settimeout(None)
    assert answer, process.communicate()[1].decode()
    parent = Parent(here, process, started, json.loads(answer))
    atexit.register(parent.end)
    return parent


# Code of the forked process.


def _serve(channel: socket.socket) -> list[str]:
    """Fork for each request. Returns in the child that becomes the command: its arguments."""
    channel.send(json.dumps(_import_everything()).encode())
    # Without this, reference counting in a fork would copy the pages of unchanged objects.
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
    """Fork the command, wait for it and send its exit code; returns only in the command."""
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
    """Import everything that commands need; return the variables that were read meanwhile."""
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
    """Collect the names of variables that are read inside the block."""
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
    del sys.path[0]  # The folder of this file, which a command does not have on its path.
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    from k8s_ucp.cli import main

    sys.argv = [str(main.__file__), *words[len(PROGRAM) :]]
    main.main()
