"""Host placement: components as processes of this machine, kept running by supervisord.

Each topology has one supervisord. It outlives the command that starts it and is found again by its
UNIX socket in the runtime folder (0700). All changes are made under one file lock, so that two
commands, or a command and the watcher, never interfere. A program starts when it is added, never
before: after a reboot nothing starts ahead of the core cluster.

Pods placement (components as workloads of the core cluster) shares only the components' manifests,
settings and `ready` with this.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from k8s_ucp.components.host import program
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.host.supervisor_client import ProgramState, SupervisorSilent
from k8s_ucp.components.host.supervisord import Supervisord
from k8s_ucp.locks import locked
from k8s_ucp.process import ProcessIdentity, listeners
from k8s_ucp.workspace import (
    StateFolder,
    make_private_folder,
    socket_folder_of_config,
    write_private_file,
)

SOCKET = "supervisor.sock"
START_SECONDS = 10.0
LOCK_SECONDS = 20.0
GRACE_SECONDS = 0.7
"""Between SIGTERM and SIGKILL when everything stops; all important state is in etcd and git."""


@dataclass(frozen=True)
class HostPlacement:
    """The components' processes of one topology.

    state: its hidden folder, which must exist. runtime: its short folder for sockets, created here.
    """

    state: StateFolder
    runtime: Path

    def log(self, name: str) -> Path:
        """Log file of a program; supervisord's own has the name `supervisord`."""
        return self.state.logs / f"{name}.log"

    def ensure_running(self) -> bool:
        """Ensure a supervisord; True if it had to be started, then without programs.

        Raises UcpError if a foreign process uses our socket, DeadlineExceeded if supervisord does
        not start in time.
        """
        with self._locked():
            self._stop_mark.unlink(missing_ok=True)
            if self._supervisord.responds():
                if self._supervisord.config.exists():
                    return False
                # The state folder was deleted under it, so it can't start anything any more.
                self._supervisord.stop(GRACE_SECONDS)
            self._supervisord.prepare()
            self._forget_programs()
            self._launch(())
            return True

    def revive(self, *, keep: Sequence[int] = ()) -> bool:
        """Replace a supervisord that died and restart all its programs; returns whether it had.

        Orphans are ended first, except PIDs in `keep`. Does nothing while the topology is stopping
        or stopped, or after its folder was moved or deleted.
        """
        if not self.state.components.is_dir():
            return False
        with self._locked():
            supervisord = self._supervisord
            if self.is_stopping() or not supervisord.config.exists() or supervisord.responds():
                return False
            self._launch(keep)
            return True

    def start(self, programs: Sequence[Program]) -> list[str]:
        """Start programs beside those that run; returns names of new and changed ones.

        A program that is unchanged keeps running, so a second call changes nothing.
        """
        with self._locked():
            make_private_folder(self._programs)
            for each in programs:
                _write_if_changed(self._script(each.name), program.script(each))
                _write_if_changed(self._section(each.name), program.section(each))
            return self._update()

    def remove(self, names: Sequence[str]) -> None:
        """Stop programs and remove their configuration."""
        with self._locked():
            for name in names:
                self._script(name).unlink(missing_ok=True)
                self._section(name).unlink(missing_ok=True)
            self._update()

    def restart(self, name: str) -> None:
        """Restart a program, even if supervisord gave up on it."""
        with self._locked(), self._supervisord.control() as control:
            control.stop(name)
            control.start(name)

    def restart_given_up(self) -> list[str]:
        """Restart the programs that supervisord gave up on; returns their names."""
        with self._supervisord.control() as control:
            given_up = [each.name for each in control.states().values() if each.state == "FATAL"]
            for name in given_up:
                control.start(name)
        return given_up

    def pause(self, patterns: Sequence[str]) -> list[str]:
        """Stop running programs that match, until `resume`; returns their names."""
        with self._supervisord.control() as control:
            running = [each.name for each in control.states().values() if each.running]
            names = [name for name in running if _fits(name, patterns)]
            for name in names:
                control.stop(name)
        return names

    def resume(self, patterns: Sequence[str]) -> list[str]:
        """Start programs again that `pause` stopped; returns their names."""
        with self._supervisord.control() as control:
            states = control.states().values()
            stopped = [each.name for each in states if each.state == "STOPPED"]
            names = [name for name in stopped if _fits(name, patterns)]
            for name in names:
                control.start(name)
        return names

    def is_running(self) -> bool:
        """Whether our supervisord responds. Raises UcpError if something else has its socket."""
        return self._supervisord.responds()

    def supervisor(self) -> ProcessIdentity | None:
        """The supervisord that was started last, if it still runs."""
        return self._supervisord.identity()

    def states(self) -> dict[str, ProgramState]:
        """State by program name; empty if there is no supervisord."""
        try:
            with self._supervisord.control() as control:
                return control.states()
        except SupervisorSilent:
            return {}

    def executable(self, name: str) -> str:
        """Path of the executable of a program; empty if there is no such program."""
        try:
            *_, last = self._script(name).read_text("utf-8").strip().split("\n")
        except OSError:
            return ""
        return shlex.split(last)[1]

    def unused(self, ports: Mapping[str, int]) -> dict[str, int]:
        """Those ports on which none of its programs listens; keys begin with a program's name.

        A program without its port still runs, or is restarted again and again.
        """
        running = [each for each in self.states().values() if each.pid]
        if sys.platform != "linux":
            return {
                name: port
                for name, port in ports.items()
                if not any(f"{name}-".startswith(f"{each.name}-") for each in running)
            }
        pids = {*(each.pid for each in running), *(each.pid for each in self.remains())}
        used = {port for _, port in listeners(*pids)}
        return {name: port for name, port in ports.items() if port not in used}

    def remains(self) -> list[ProcessIdentity]:
        """All processes here that belong to supervisord or its programs."""
        return self._supervisord.remains()

    def is_stopping(self) -> bool:
        """Whether the topology is stopping or stopped, so that nothing may be started."""
        return self._stop_mark.exists()

    def stop_all(self, *, grace: float = GRACE_SECONDS) -> None:
        """End all programs and supervisord, and delete sockets and secrets.

        grace: seconds between SIGTERM and SIGKILL. Does nothing if nothing runs.
        """
        traces = self.state.components.is_dir() or self.runtime.exists()
        if not traces and not self.remains():
            return
        with self._locked():
            self._mark_stopping()
            if self._supervisord.moved_to():
                # Nothing of this folder runs: another one's supervisord has its socket.
                self._forget_programs()
                return
            if self._supervisord.responds():
                self._supervisord.stop(grace)
            self._supervisord.clear_remains()
            self._supervisord.forget()
            self._forget_programs()

    @property
    def _supervisord(self) -> Supervisord:
        former = socket_folder_of_config(self.state)
        return Supervisord(
            folder=self.state.components,
            socket=self.runtime / SOCKET,
            log=self.log("supervisord"),
            identifier=self.state.identifier,
            former=former / SOCKET if former else None,
        )

    @property
    def _stop_mark(self) -> Path:
        return self.state.components / "stopping"

    def _mark_stopping(self) -> None:
        """Without a free inode for a file, a link to another one has to do."""
        try:
            write_private_file(self._stop_mark, "")
        except OSError:
            with suppress(FileExistsError):
                self._stop_mark.hardlink_to(self._lock)

    @property
    def _lock(self) -> Path:
        return self.state.components / "lock"

    @property
    def _programs(self) -> Path:
        return self.state.components / program.SCRIPTS

    def _script(self, name: str) -> Path:
        return self._programs / f"{name}.sh"

    def _section(self, name: str) -> Path:
        return self._programs / f"{name}.conf"

    def _forget_programs(self) -> None:
        for path in (*self._programs.glob("*.conf"), *self._programs.glob("*.sh")):
            path.unlink(missing_ok=True)

    def _launch(self, keep: Sequence[int]) -> None:
        supervisord = self._supervisord
        supervisord.prepare()
        supervisord.clear_remains(keep)
        self._write_config()
        supervisord.launch(START_SECONDS)

    def _write_config(self) -> None:
        supervisord = self._supervisord
        sections = {path.stem: path.read_text("utf-8") for path in self._programs.glob("*.conf")}
        root = os.geteuid() == 0
        text = program.config(supervisord.socket, supervisord.identifier, sections, root=root)
        _write_if_changed(supervisord.config, text)

    def _update(self) -> list[str]:
        """Apply the configuration files to supervisord; names of added and changed programs."""
        self._write_config()
        with self._supervisord.control() as control:
            added, changed, removed = control.reload()
            for name in (*changed, *removed):
                control.stop(name)
                control.remove(name)
            for name in (*added, *changed):
                control.add(name)
        return sorted((*added, *changed))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.state.components
        make_private_folder(folder)
        with locked(self._lock, f"the lock of the components in {folder}", timeout=LOCK_SECONDS):
            yield


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, each) for each in patterns)


def _write_if_changed(path: Path, text: str) -> None:
    with suppress(OSError):
        if path.read_text("utf-8") == text:
            return
    write_private_file(path, text)
