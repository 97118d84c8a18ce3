"""Starts, identifies and ends one supervisord, and cleans up after one that died."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.components.host.supervisor_client import SupervisorClient, SupervisorSilent, peer
from k8s_ucp.errors import DeadlineExceeded, UcpError, command_line
from k8s_ucp.process import (
    ProcessIdentity,
    identify,
    is_marked,
    is_running,
    mark_of,
    marked,
    spawn,
    terminate,
    terminate_all,
    wait_exited,
    working_folder,
    works_in,
)
from k8s_ucp.workspace import make_socket_folder, write_private_file
from k8s_ucp.workspace.records import parse_json, record_of

ORPHAN_GRACE = 0.7
POLL = 0.02

KEPT_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "UCP_CACHE_DIR", "SSH_AUTH_SOCK"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("XDG_CONFIG_HOME", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSH_COMMAND", "GIT_SSH"),
)
"""Variables of the caller that locate files and configure git, so that Argo CD and the backup work
like `ucp start` itself. Others may contain secrets."""

_MARK = "UCP_SUPERVISOR"
"""Set in the environment of supervisord, and so of all its descendants, to its identifier."""
_URL = "SUPERVISOR_SERVER_URL"
"""Set by supervisord to its socket: the only mark of processes that older versions started."""


@dataclass(frozen=True)
class Supervisord:
    """folder: its config and working directory. socket: where it listens. log: its own output.

    identifier: unique to this supervisord. former: socket on which the supervisord of an older
    version may listen.
    """

    folder: Path
    socket: Path
    log: Path
    identifier: str
    former: Path | None = None

    @property
    def config(self) -> Path:
        return self.folder / "supervisord.conf"

    def control(self) -> SupervisorClient:
        """A connection to it. Raises SupervisorSilent if the socket is a moved workspace's."""
        if moved := self.moved_to():
            raise SupervisorSilent(
                f"the supervisord on {self.socket} belongs to a workspace that was moved: {moved}"
            )
        return SupervisorClient(self.socket, self._users())

    def moved_to(self) -> Path | None:
        """The folder of the supervisord on its socket if that was moved, and this is in its place.

        Both have the same socket and identifier, which depend on the path.
        """
        pid = peer(self.socket) if self.folder.is_dir() else None
        if not pid or works_in(pid, self.folder) is not False:
            return None
        return working_folder(pid) if is_marked(pid, _MARK, self.identifier) else None

    def identity(self) -> ProcessIdentity | None:
        """The one that was launched last, if it still runs; also if its record was deleted."""
        if not self._record.exists():
            return self._in_folder()
        try:
            recorded = record_of(ProcessIdentity, parse_json(self._record.read_text("utf-8")))
        except (OSError, ValueError):
            return None
        return recorded if is_running(recorded) and self._is_ours(recorded.pid) else None

    def _in_folder(self) -> ProcessIdentity | None:
        """The one that works in the folder, whatever its mark: the folder may have been moved."""
        for found, session in marked((_MARK, None)):
            if session == found.pid and works_in(found.pid, self.folder):
                return found
        return None

    def responds(self) -> bool:
        """Whether it responds on its socket. Raises UcpError if another process has the socket."""
        try:
            kind = self.socket.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # Not permitted: the folder belongs to another user, so nothing in it is ours.
            return False
        if not stat.S_ISSOCK(kind):
            raise UcpError(
                f"{self.socket} exists and is not a socket, but is needed for supervisord",
                next=f"inspect it, delete it ({command_line('rm', '-r', self.socket)}), then "
                "run the command again",
            )
        if folder := self.moved_to():
            moved = folder.parents[2]
            raise UcpError(
                f"components of a workspace that was moved from here to {moved} are running, and"
                f" use {self.socket}",
                next=f"stop them ({command_line('cd', moved)} && ucp stop), then run the command"
                " again",
            )
        try:
            with self.control() as control:
                found = control.identification()
        except SupervisorSilent as error:
            nobody = ConnectionRefusedError | FileNotFoundError | PermissionError
            if isinstance(error.__cause__, nobody):
                return False
            ours = self.identity()
            if ours and ours.pid == peer(self.socket):
                return False
            raise self._foreign(error.message) from error
        except UcpError as error:
            raise self._foreign(error.message) from error
        if found != self.identifier:
            raise self._foreign(f"it identifies itself as {found}")
        return True

    def prepare(self) -> None:
        """Check that a socket can be created; affects no running process.

        Call it before ending anything: a supervisord without its socket still does its work, and
        should continue if it can't be replaced. Raises UcpError.
        """
        make_socket_folder(self.socket.parent)
        probe = self.socket.with_name(f".{os.getpid()}.sock")
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(probe))
        except OSError as error:
            raise UcpError(
                f"failed to create a socket in {probe.parent}: {error.strerror or error}",
                next=f"check that the disk of {probe.parent} is writable and has free space",
            ) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def launch(self, timeout: float) -> None:
        """Start it and wait for its response; call `prepare` and `clear_remains` first.

        Raises UcpError if it exits at once, DeadlineExceeded if it doesn't respond in time.
        """
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        started = spawn(
            [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", self.config],
            env={**kept, _MARK: self.identifier},
            cwd=self.folder,
            log=self.log,
        )
        write_private_file(self._record, json.dumps(asdict(started)))
        until = time.monotonic() + timeout
        while not self.responds():
            if not is_running(started):
                raise UcpError(
                    f"supervisord exited immediately:\n{_tail(self.log)}", next=f"see {self.log}"
                )
            if time.monotonic() > until:
                terminate(started, grace=1)
                raise DeadlineExceeded(
                    f"supervisord to respond on {self.socket}", timeout, _tail(self.log)
                )
            time.sleep(POLL)

    def stop(self, grace: float) -> None:
        """End its programs in parallel, then itself; its own shutdown ends them one after another.

        grace: seconds between SIGTERM and SIGKILL.
        """
        with self.control() as control:
            own = identify(control.pid())
            pids = [each.pid for each in control.states().values() if each.pid]
            running = [found for pid in pids if (found := identify(pid))]
            control.signal_all_to_stop()
            terminate_all(running, grace=grace)
            with suppress(SupervisorSilent):
                control.shut_down()
        if own and not wait_exited(own, 1.5):
            terminate(own, grace=0)

    def clear_remains(self, keep: Sequence[int] = ()) -> None:
        """End processes left by one that died or hangs, except PIDs in `keep`; remove its socket.

        Its children have its mark in their environment and are in a session that another process
        leads. Control planes that the reconciler started have the mark too, but lead their own
        sessions: they are left alone.
        """
        deaf = self.identity()
        former = self._former_mark(deaf)
        if deaf:
            terminate(deaf, grace=0)
        children = [*self._children(), *(self._session(deaf, former) if deaf and former else [])]
        orphans = [each for each in children if each.pid not in (*keep, os.getpid())]
        terminate_all(orphans, grace=ORPHAN_GRACE)
        with suppress(NotADirectoryError, PermissionError):
            self.socket.unlink(missing_ok=True)

    def remains(self) -> list[ProcessIdentity]:
        """Processes of it and its programs that run."""
        own = self.identity()
        if own is None:
            return self._children()
        former = self._former_mark(own)
        moved = self._session(own, former) if former else []
        return [own, *self._children(), *(each for each in moved if each != own)]

    def _children(self) -> list[ProcessIdentity]:
        sockets = {self.socket, *([self.former] if self.former else [])}
        marks = {(_MARK, self.identifier), *((_URL, f"unix://{each}") for each in sockets)}
        sessions: dict[int, list[ProcessIdentity]] = {}
        for found, session in marked(*marks):
            if session != found.pid:
                sessions.setdefault(session, []).append(found)
        ours = (found for leader, found in sessions.items() if self._is_here(leader, found))
        return [each for found in ours for each in found]

    def _is_here(self, leader: int, members: Sequence[ProcessIdentity]) -> bool:
        """Whether a session with our mark is not that of a workspace which was moved from here."""
        if (works_here := works_in(leader, self.folder)) is not None:
            return works_here
        # The leader exited, or the folder was deleted. Programs work in the topology's folder,
        # and the reconciler in the workspace's.
        known = [folder for each in members if (folder := working_folder(each.pid))]
        topology = self.folder.parent.resolve()
        return not known or any(
            each.is_relative_to(topology) or each == topology.parents[1] for each in known
        )

    def _former_mark(self, own: ProcessIdentity | None) -> str | None:
        """The mark of its processes if its folder was moved since they started."""
        found = mark_of(own.pid, _MARK) if own else None
        return found if found != self.identifier else None

    def _session(self, own: ProcessIdentity, mark: str) -> list[ProcessIdentity]:
        """Processes with a mark in the session that it leads, also right after its end.

        The mark alone proves nothing: another workspace may be in the former place. The kernel
        doesn't reuse the id of a session that has processes.
        """
        return [found for found, session in marked((_MARK, mark)) if session == own.pid]

    def forget(self) -> None:
        """Delete its files, its programs' sockets and, if empty, the sockets' folder."""
        for path in (self.config, self._record, self.folder / "supervisord.pid"):
            path.unlink(missing_ok=True)
        if self.socket.parent.is_dir():
            for path in self.socket.parent.iterdir():
                if path.is_socket():
                    path.unlink(missing_ok=True)
        with suppress(OSError):
            self.socket.parent.rmdir()

    def _users(self) -> set[int]:
        """Who may have started it; root also works for the owner of the state folder."""
        users = {os.getuid()}
        if 0 in users:
            with suppress(OSError):
                users.add(self.folder.stat().st_uid)
        return users

    def _is_ours(self, pid: int) -> bool:
        """In a copy of the folder, the record names the original's supervisord."""
        return is_marked(pid, _MARK, self.identifier) or bool(works_in(pid, self.folder))

    @property
    def _record(self) -> Path:
        return self.folder / "supervisord.json"

    def _foreign(self, what: str) -> UcpError:
        pid = peer(self.socket)
        found = identify(pid) if pid else None
        who = f"process {found.pid} ({found.executable})" if found else "a process"
        end = f"stop it if you recognize it (kill {found.pid})" if found else "find and stop it"
        return UcpError(
            f"{who} listens on {self.socket} and is not ucp's supervisord: {what}",
            next=f"{end}, delete {self.socket}, then run the command again",
        )


def _tail(path: Path) -> str:
    with suppress(OSError):
        return "\n".join(path.read_text("utf-8", "replace").splitlines()[-8:])
    return ""
