"""An idle board replaces its process by a small one, and starts again for the next page.

The modules for a topology's state take some 50 MiB, and imports can't be undone. So an idle board
becomes `idle_server.py` (by exec, so it stays the same process for its terminal and parent), which
becomes the original command again when somebody connects. The listener stays open all the time.
Tokens and cookies are kept in a pipe meanwhile, never on a command line or in an environment.
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
"""`LISTENER,KEPT`: descriptors that a board takes over when it starts again."""
WAITING = Path(__file__).with_name("idle_server.py")


def rest(listener: socket.socket, kept: KeptSessions) -> None:
    """Become a process that waits with nothing loaded. Returns only if that fails."""
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
    """Whether this process is a board that starts again, regardless of its command line."""
    return WAKES in os.environ


def wake() -> tuple[socket.socket, KeptSessions]:
    """(listener, sessions) of the board before its rest."""
    listener, pipe = (int(each) for each in os.environ.pop(WAKES).split(","))
    os.set_inheritable(listener, False)
    with os.fdopen(pipe, "rb") as file:
        kept = json.load(file)
    sessions = tuple(BoardSession(**each) for each in kept["sessions"])
    return socket.socket(fileno=listener), KeptSessions(kept["base"], kept["token"], sessions)


def _filled(data: bytes) -> int:
    """The read end of a pipe with the data: a few KiB, which fit into every pipe's buffer."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(data)
    return read
