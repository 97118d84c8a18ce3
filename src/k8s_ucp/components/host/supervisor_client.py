"""Client of supervisord on its UNIX socket, with a timeout for every call.

supervisor's own client transport has no timeouts and imports its server; the standard library's
XML-RPC client only needs a connection to a socket.
"""

from __future__ import annotations

import errno
import http.client
import os
import socket
import struct
import xmlrpc.client
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from k8s_ucp.errors import UcpError

CALL_SECONDS = 5.0

_ENDING = 6
_ALREADY_STARTED = 60
_NOT_RUNNING = 70
_ALREADY_ADDED = 90


class SupervisorSilent(UcpError):
    """supervisord does not respond on its socket, or is shutting down."""


@dataclass(frozen=True)
class ProgramState:
    """State of one program in supervisord."""

    name: str
    state: str
    """RUNNING, STARTING, BACKOFF, FATAL, EXITED, STOPPING, STOPPED or UNKNOWN."""
    pid: int
    """0 if it has no process."""
    message: str

    @property
    def running(self) -> bool:
        return self.pid != 0 and self.state in ("RUNNING", "STARTING")


class SupervisorClient:
    """A connection to one supervisord; not thread-safe.

    users: whose supervisord it may be; by default, the user's own. After a reboot, anyone could
    have created the folder in /tmp, and name any process as one to be stopped.
    """

    def __init__(self, path: Path, users: Collection[int] = ()) -> None:
        self._path = path
        self._transport = _Transport(path, users or {os.getuid()})
        self._server = xmlrpc.client.ServerProxy("http://supervisor", transport=self._transport)

    def __enter__(self) -> SupervisorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def identification(self) -> str:
        return str(self._call("getIdentification"))

    def pid(self) -> int:
        return int(self._call("getPID"))

    def states(self) -> dict[str, ProgramState]:
        """State by program name."""
        return {
            each["name"]: ProgramState(
                each["name"],
                each["statename"],
                int(each["pid"]),
                each["spawnerr"] or each["description"],
            )
            for each in self._call("getAllProcessInfo")
        }

    def reload(self) -> tuple[list[str], list[str], list[str]]:
        """Reload the config: names of the programs that were (added, changed, removed)."""
        [[added, changed, removed]] = self._call("reloadConfig")
        return list(added), list(changed), list(removed)

    def add(self, name: str) -> None:
        """Add a program from the config; it starts at once."""
        self._call("addProcessGroup", name, ignore=_ALREADY_ADDED)

    def remove(self, name: str) -> None:
        """Remove a program; it must be stopped."""
        self._call("removeProcessGroup", name)

    def start(self, name: str) -> None:
        self._call("startProcess", name, False, ignore=_ALREADY_STARTED)

    def stop(self, name: str) -> None:
        """Stop a program and wait until it exits (SIGKILL after STOP_SECONDS)."""
        self._call("stopProcess", name, True, ignore=_NOT_RUNNING)

    def signal_all_to_stop(self) -> None:
        """Signal all programs to stop, without waiting."""
        self._call("stopAllProcesses", False)

    def shut_down(self) -> None:
        self._call("shutdown")

    def _call(self, method: str, *arguments: object, ignore: int | None = None) -> Any:
        try:
            return getattr(self._server.supervisor, method)(*arguments)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == ignore:
                return None
            if fault.faultCode == _ENDING:
                raise SupervisorSilent("supervisord is shutting down") from fault
            raise UcpError(f"supervisord: {method}: {fault.faultString}") from fault
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise SupervisorSilent(
                f"supervisord is not responding on {self._path}: "
                f"{getattr(error, 'strerror', None) or type(error).__name__}"
            ) from error


def peer(path: Path) -> int | None:
    """PID of the process that listens on a UNIX socket; None if the system can't tell."""
    with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
        client.settimeout(1)
        client.connect(str(path))
        pid, _ = _listener(client)
        return pid
    return None


def _listener(client: socket.socket) -> tuple[int | None, int | None]:
    """(PID, user) of the process that listens on a UNIX socket; None if the system can't tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None, None
    pid, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, 12))
    return pid, user


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, users: Collection[int]) -> None:
        super().__init__("supervisor", timeout=CALL_SECONDS)
        self._path = path
        self._users = users

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(cast("float", self.timeout))
        self.sock.connect(str(self._path))
        _, user = _listener(self.sock)
        if user is not None and user not in self._users:
            raise PermissionError(errno.EPERM, "another user listens there")


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: Path, users: Collection[int]) -> None:
        super().__init__()
        self._path = path
        self._users = users

    def make_connection(self, host: object) -> http.client.HTTPConnection:  # noqa: ARG002
        if not self._connection[1]:
            connection = _Connection(self._path, self._users)
            self._connection = ("supervisor", connection)
        return cast("http.client.HTTPConnection", self._connection[1])
