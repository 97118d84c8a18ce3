"""Finds processes by their environment, working folder and ports."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from k8s_ucp.process.identity import ProcessIdentity, identify

_DELETED = " (deleted)"
"""What the kernel appends to the path of a deleted folder."""
_LISTEN = "0A"
"""State LISTEN in /proc/net/tcp."""


def marked(*marks: tuple[str, str | None]) -> list[tuple[ProcessIdentity, int]]:
    """(process, session id) of this user's processes whose environment has one of the entries.

    marks: (name, value), None for any value. It proves descent: only processes that we started
    with that entry, and their descendants, have it. Root sees all users': `sudo ucp stop` has to
    find the owner's.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if not _is_ours(process):
                continue
            environment = _environment(process)
            if any(_has(environment, *each) for each in marks):
                identity = identify(process.pid)
                if identity:
                    found.append((identity, os.getsid(process.pid)))
        except (psutil.Error, OSError):
            continue
    return found


def is_marked(pid: int, name: str, value: str) -> bool:
    """Whether the process is this user's and its environment has name=value."""
    return mark_of(pid, name) == value


def mark_of(pid: int, name: str) -> str | None:
    """An entry of the environment of this user's process; None if it has none or is gone."""
    try:
        process = psutil.Process(pid)
        return _environment(process).get(name) if _is_ours(process) else None
    except (psutil.Error, OSError):
        return None


def _has(environment: Mapping[str, str], name: str, value: str | None) -> bool:
    return name in environment and value in (None, environment[name])


def _is_ours(process: psutil.Process) -> bool:
    return os.getuid() == 0 or process.uids().real == os.getuid()


def _environment(process: psutil.Process) -> Mapping[str, str]:
    """The environment of a process. It is empty for a moment after the start, so wait for it."""
    for _ in range(40):
        environment = process.environ()
        if environment or not process.exe():  # kernel threads never have one
            break
        time.sleep(0.005)
    return environment


def working_in(folder: Path) -> list[ProcessIdentity]:
    """Processes whose working folder is `folder` or below it: leftovers of an interrupted run."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                found.append(identify(process.pid))
    return [each for each in found if each]


def works_in(pid: int, *folders: Path) -> bool | None:
    """Whether the process works in one of these folders, also if it was moved since.

    True if its working folder was one of them when it was deleted. None if that is unknown: it was
    deleted elsewhere, or the process is gone.
    """
    found = working_folder(pid)
    if found is None and _deleted_folder(pid) in {each.absolute() for each in folders}:
        return True
    try:
        here = found.stat() if found else None
    except OSError:
        return None
    return any(_is(here, each) for each in folders) if here else None


def working_folder(pid: int) -> Path | None:
    """The process's working folder where it is now; None if it was deleted, or unknown."""
    try:
        here = Path(psutil.Process(pid).cwd())
        return here if here.is_dir() else None
    except (psutil.Error, OSError):
        return None


def _deleted_folder(pid: int) -> Path | None:
    """Where the process's working folder was when it was deleted; None if it exists."""
    try:
        path = str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return None
    return Path(path.removesuffix(_DELETED)) if path.endswith(_DELETED) else None


def _is(found: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(found, path.stat())
    except OSError:
        return False


def is_mentioned(folder: Path) -> bool:
    """Whether a process runs a program of this folder, or has its path in argv or environment.

    Considers all processes that this user can inspect.
    """
    text = f"{folder}{os.sep}"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            words = [process.exe(), *process.cmdline(), *process.environ().values()]
            if any(text in each for each in words) and process.pid != os.getpid():
                return True
    return False


def listeners(*pids: int) -> list[tuple[str, int]]:
    """(address, port) of every TCP socket that processes listen on; see proc_pid_net(5).

    Not by psutil: it reads all connections of the machine for each process, which takes 8 ms of
    CPU time each if the kernel's table is large.
    """
    own = {each for pid in pids for each in _sockets(pid)}
    return [address for address, number in _listening() if number in own]


def listener(port: int) -> tuple[str, int] | None:
    """(name, PID) of the process that listens on a TCP port; None if it is another user's."""
    own = {number for (_, each), number in _listening() if each == port}
    for pid in psutil.pids() if own else ():
        if not own.isdisjoint(_sockets(pid)):
            with contextlib.suppress(psutil.Error):
                return psutil.Process(pid).name(), pid
    return None


def _listening() -> Iterator[tuple[tuple[str, int], str]]:
    """((address, port), inode number) of every TCP socket that something listens on."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # no IPv6 on this machine
            for line in Path("/proc/net", name).read_text("ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTEN:
                    yield _address(words[1]), words[9]


def _sockets(pid: int) -> Iterator[str]:
    """Inode numbers of a process's sockets; none if it is gone or another user's."""
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                kind, _, number = str(each.readlink()).partition(":")
                if kind == "socket":
                    yield number.strip("[]")


def _address(text: str) -> tuple[str, int]:
    """Parse the kernel's form: hexadecimal 32-bit words, each in the machine's byte order."""
    host, _, port = text.partition(":")
    words = [bytes.fromhex(host[at : at + 8]) for at in range(0, len(host), 8)]
    if sys.byteorder == "little":
        words = [each[::-1] for each in words]
    address = ipaddress.ip_address(b"".join(words))
    # gRPC listens for IPv4 on IPv6 sockets.
    mapped = address.ipv4_mapped if address.version == 6 else None
    return str(mapped or address), int(port, 16)


def peak_bytes(pid: int) -> int:
    """Peak memory of a process (VmHWM); 0 if unknown."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else 0


def available_memory() -> int:
    """Bytes that new processes can use without swapping."""
    return int(psutil.virtual_memory().available)
