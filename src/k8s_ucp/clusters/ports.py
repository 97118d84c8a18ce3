"""Reserves ports for a user across all workspaces, so that no two processes get the same.

A registry file records the owner of each port, so that a stopped cluster finds its ports free
again. Ports are outside the range from which the kernel picks ports of outgoing connections: within
it, any program could hold one by chance when a cluster starts again. An owner is a folder; once the
folder is deleted its ports are free again. If the parent folder is missing too, it may be on a disk
that is mounted again later: the last MOST_AWAY of those owners keep their ports.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.locks import locked
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.workspace import cache_folder, make_private_folder, write_private_json
from k8s_ucp.workspace.records import parse_json

LOWEST, HIGHEST = 20000, 65000
NODE_PORTS = range(30000, 32768)
"""Kubernetes allocates these for Services of type NodePort, so they are not used."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOCK_SECONDS = 30.0
MOST_AWAY = 100
"""Number of owners with a missing parent folder that keep their ports."""
RECORD = "ports.json"
"""File in the folder of the processes that listen."""

Table = dict[str, dict[str, int]]


def default_registry() -> Path:
    """The registry file that all of a user's workspaces share."""
    return cache_folder() / "ports.json"


class Ports:
    """Reservations in one registry file. Safe across threads and processes."""

    def __init__(self, registry: Path) -> None:
        self._file = registry
        self._lock = registry.with_name(registry.name + ".lock")

    def reserve(
        self, owner: str, names: Sequence[str], *, known: Mapping[str, int] = MappingProxyType({})
    ) -> dict[str, int]:
        """Reserve a port for each name; the same owner and names get the same ports again.

        owner: an absolute path that exists as long as the ports are needed. known: ports with which
        its processes were started; they override the registry, unless another owner has them.
        Raises UcpError if no port is free, DeadlineExceeded if the registry stays locked.
        """
        if set(names) <= known.keys() and not self._is_writable():
            # Commands that only look, such as `ucp status`, need no cache that can be written.
            return {name: known[name] for name in names}
        with self._opened() as table:
            others = {port for who in table.keys() - {owner} for port in table[who].values()}
            own = table.setdefault(owner, {})
            own.update({n: p for n, p in known.items() if n in names and p not in others})
            missing = [name for name in names if name not in own]
            taken = {port for ports in table.values() for port in ports.values()}
            # The start depends on the registry's path, so two users' registries rarely collide.
            free = choose(
                candidates(read_ephemeral(), start=_number(str(self._file))),
                len(missing),
                taken,
                can_listen,
            )
            own.update(zip(missing, free, strict=True))
            return {name: own[name] for name in names}

    def claim(self, owner: str, ports: Mapping[str, int]) -> None:
        """Register ports that an owner has already, such as after the registry file was lost.

        Raises UcpError if another owner has one of them now.
        """
        with self._opened() as table:
            for other, taken in table.items():
                for port in set(taken.values()) & set(ports.values()):
                    if other != owner:
                        raise UcpError(
                            f"port {port} of {owner} was reassigned to {other}",
                            next=f"only one of the two can run: stop the other one (ucp stop), "
                            f"then delete its entry from {self._file}",
                        )
            table[owner] = {**table.get(owner, {}), **ports}

    def release(self, owner: str) -> None:
        """Release all ports of an owner; does nothing if it has none."""
        if self._file.exists():
            with self._opened() as table:
                table.pop(owner, None)

    def owners(self) -> list[str]:
        """Sorted owners of ports."""
        return sorted(self._read())

    def _is_writable(self) -> bool:
        try:
            make_private_folder(self._file.parent)
        except UcpError:
            return False
        # Files may belong to root, after a command under sudo.
        files = [each for each in (self._lock, self._file) if each.exists()]
        return os.access(self._file.parent, os.W_OK | os.X_OK) and all(map(_is_accessible, files))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Table]:
        make_private_folder(self._file.parent)
        for each in (self._lock, self._file):
            if each.exists() and not _is_accessible(each):
                raise UcpError(
                    f"the port registry {each} is not writable for you",
                    next=f"make it yours ({command_line('ls', '-l', each)} shows its owner and "
                    "mode), or set UCP_CACHE_DIR to another folder",
                )
        with locked(self._lock, "the lock of the port registry", timeout=LOCK_SECONDS):
            before = self._read()
            deleted_owners = _deleted_owners(before)
            table = {owner: dict(before[owner]) for owner in before if owner not in deleted_owners}
            yield table
            if table != before:
                write_private_json(self._file, table)

    def _read(self) -> Table:
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            table: Table = parse_json(text)
            return {
                str(owner): {str(name): int(port) for name, port in ports.items()}
                for owner, ports in table.items()
            }
        except (ValueError, AttributeError, TypeError, OverflowError) as error:
            raise UcpError(
                f"the port registry {self._file} is corrupt: {error}",
                next=command_line("rm", self._file)
                + " (running clusters register their ports again)",
            ) from error


def _is_accessible(file: Path) -> bool:
    return os.access(file, os.R_OK | os.W_OK)


def record(folder: Path, ports: Mapping[str, int]) -> None:
    """Record in a folder the ports with which its processes are started."""
    if recorded(folder) != ports:
        write_private_json(folder / RECORD, dict(ports))


def recorded(folder: Path) -> dict[str, int]:
    """The ports recorded in a folder; empty if there is no readable record.

    Needed because the registry belongs to a user: cron with another home, or a user whose cache was
    deleted, has another one.
    """
    try:
        found = parse_json((folder / RECORD).read_text("utf-8"))
        return {str(name): int(port) for name, port in found.items()}
    except (OSError, ValueError, AttributeError, TypeError, OverflowError):
        return {}


def candidates(ephemeral: range, *, start: int) -> Iterator[int]:
    """Ports that may be reserved, in the order of trying; start: any number, selects the first."""
    usable = _without([range(LOWEST, HIGHEST)], NODE_PORTS)
    outside = _without(usable, ephemeral) or usable
    first = start % sum(map(len, outside))
    # Not a list, since the first few of 17,000 ports are enough.
    return chain(islice(chain(*outside), first, None), islice(chain(*outside), first))


def _without(ports: Iterable[range], excluded: range) -> list[range]:
    parts = (
        part
        for each in ports
        for part in (
            range(each.start, min(each.stop, excluded.start)),
            range(max(each.start, excluded.stop), each.stop),
        )
    )
    return [part for part in parts if part]


def choose(
    ports: Iterable[int], count: int, taken: set[int], is_free: Callable[[int], bool]
) -> list[int]:
    """The first `count` ports that are neither reserved nor in use. Raises UcpError."""
    chosen: list[int] = []
    for port in ports:
        if len(chosen) == count:
            break
        if port not in taken and is_free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise UcpError(
            f"not enough free ports between {LOWEST} and {HIGHEST}: {count} needed, "
            f"{len(chosen)} found",
            next="stop topologies that are no longer needed: ucp stop",
        )
    return chosen


def can_listen(port: int) -> bool:
    """Whether nothing listens on that port of the loopback interface or of all interfaces."""
    try:
        _listen(port)
    except OSError:
        return False
    return True


def refuse_taken(ports: Mapping[str, int], where: str) -> None:
    """Raises UcpError if another program listens on one of these ports. ports: by name."""
    for name, port in ports.items():
        if not can_listen(port):
            raise in_use(port, name, where)


def in_use(port: int, name: str, where: str) -> UcpError:
    """The refusal of a port on which another program listens. name: what needs the port."""
    from k8s_ucp.process import listener

    program, pid = listener(port) or ("", 0)
    return UcpError(
        f"port {port} of {name} in {where} is already in use by another program"
        + (f": {program} (PID {pid})" if pid else ""),
        next=f"stop it: kill {pid}"
        if pid
        else f"stop it (sudo ss -ltnp 'sport = :{port}' shows which)",
    )


def is_taken(port: int) -> bool:
    """Whether something listens on that port, even if we may not bind it (below 1024)."""
    try:
        _listen(port)
    except PermissionError:
        pass
    except OSError:
        return True
    else:
        return False
    return is_answered(port)


def is_answered(port: int) -> bool:
    """Whether something accepts connections there; unlike `can_listen`, it occupies no port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        return client.connect_ex((ADDRESS, port)) == 0


def _listen(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set it too: recently closed connections don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((ADDRESS, port))
        probe.listen(1)


def read_ephemeral() -> range:
    """The kernel's range of ports for outgoing connections; Linux's default if it can't be read."""
    try:
        low, high = EPHEMERAL.read_text(encoding="ascii").split()
        return range(int(low), int(high) + 1)
    except (OSError, ValueError):
        return range(32768, 61000)


def _deleted_owners(owners: Iterable[str]) -> set[str]:
    missing = [each for each in owners if each.startswith("/") and _is_missing(Path(each))]
    away = [each for each in missing if _is_missing(Path(each).parent)]
    return {*missing} - {*away[-MOST_AWAY:]}


def _is_missing(folder: Path) -> bool:
    """Whether a folder certainly doesn't exist, rather than being inaccessible to this user."""
    try:
        return not folder.exists()
    except OSError:
        return False


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
