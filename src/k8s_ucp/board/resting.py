"""An idle board replaces its process by a tiny one, and loads again for the next page.

What it takes to look at a topology fills some 50 MiB, and no import is given back. So an idle board
becomes `waiting.py` (exec: the same process to its terminal and its parent), which becomes the
command that it was when somebody connects. The listener stays open all the time. Tokens and
cookies lie in a pipe meanwhile, never on a command line or in an environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from dataclasses import asdict
from pathlib import Path

from k8s_ucp.board.security import BoardSession, KeptSessions

WAKES = "UCP_BOARD_WAKES"
"""`LISTENER,KEPT`: descriptors of a board that goes on."""
WAITING = Path(__file__).with_name("waiting.py")


def rest(listener: socket.socket, kept: KeptSessions) -> None:
    """Wait for somebody in a process that has nothing loaded. Returns where none can be run."""
    pipe = _filled(json.dumps(asdict(kept)).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    for each in (listener.fileno(), pipe):
        os.set_inheritable(each, True)
    python = [sys.executable, "-I", "-S", str(WAITING)]
    command = [sys.executable, *sys.orig_argv[1:]]
    with contextlib.suppress(OSError):
        words = [*python, str(listener.fileno()), str(pipe), *command]
        os.execv(words[0], words)  # noqa: S606 (Python itself, as it runs)
    os.set_inheritable(listener.fileno(), False)
    os.close(pipe)


def is_woken() -> bool:
    """This process is a board that goes on, whatever its command line says."""
    return WAKES in os.environ


def wake() -> tuple[socket.socket, KeptSessions]:
    """What the board had before its rest."""
    listener, pipe = (int(each) for each in os.environ.pop(WAKES).split(","))
    os.set_inheritable(listener, False)
    with os.fdopen(pipe, "rb") as file:
        kept = json.load(file)
    sessions = tuple(BoardSession(**each) for each in kept["sessions"])
    return socket.socket(fileno=listener), KeptSessions(kept["base"], kept["token"], sessions)


def _filled(data: bytes) -> int:
    """The end to read of a pipe that holds all of it: a few KiB, which every pipe takes."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(data)
    return read
