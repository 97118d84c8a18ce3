"""Ports that no two of our processes get twice: reserved for a user across all workspaces.

A registry file keeps who has which port, so a stopped cluster finds its own free again. Ports lie
outside the range from which the kernel picks ports for outgoing connections: inside it any program
could hold one by chance when a cluster starts again. An owner is a folder; once the folder is gone
its ports are free again. Where the folder around it is gone, too, it may be on a disk that comes
back: of those the last ones keep theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from k8s_ucp.errors import UcpError
from k8s_ucp.locks import locked
from k8s_ucp.workspace import cache_folder, make_private_folder, write_private_file

ADDRESS = "127.0.0.1"
LOWEST, HIGHEST = 20000, 65000
NODE_PORTS = range(30000, 32768)
"""Kubernetes hands these out for Services of type NodePort: left alone."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOCK_SECONDS = 30.0
MOST_AWAY = 100
"""Owners that may come back with their disk."""
RECORD = "ports.json"
"""In the folder of those who listen."""

Table = dict[str, dict[str, int]]


def default_registry() -> Path:
    """The registry file shared by all of a user's workspaces."""
    return cache_folder() / "ports.json"


class Ports:
    """Reservations in one registry file. Safe between threads and processes."""

    def __init__(self, registry: Path) -> None:
        self._file = registry
        self._lock = registry.with_name(registry.name + ".lock")

    def reserve(
        self, owner: str, names: Sequence[str], *, known: Mapping[str, int] = MappingProxyType({})
    ) -> dict[str, int]:
        """A port for each name; the same owner and names get the same ports again.

        owner: an absolute path that exists as long as the ports are wanted. known: what its
        processes were started with, whatever this registry says, unless another owner has it here.
        Raises UcpError when no port is free, DeadlineExceeded when the registry stays locked.
        """
        with self._opened() as table:
            others = {port for who in table.keys() - {owner} for port in table[who].values()}
            mine = table.setdefault(owner, {})
            mine.update({n: p for n, p in known.items() if n in names and p not in others})
            missing = [name for name in names if name not in mine]
            taken = {port for ports in table.values() for port in ports.values()}
            # From a place of the registry's own: two registries (two users) seldom meet.
            free = choose(
                candidates(read_ephemeral(), start=_number(str(self._file))),
                len(missing),
                taken,
                can_listen,
            )
            mine.update(zip(missing, free, strict=True))
            return {name: mine[name] for name in names}

    def claim(self, owner: str, ports: Mapping[str, int]) -> None:
        """Note ports that an owner has already, as when the registry file was lost.

        Raises UcpError when another owner has one of them now.
        """
        with self._opened() as table:
            for other, theirs in table.items():
                for port in set(theirs.values()) & set(ports.values()):
                    if other != owner:
                        raise UcpError(
                            f"port {port} of {owner} was reassigned to {other}",
                            next=f"only one of the two can run: stop the other one (ucp stop), "
                            f"then delete its entry from {self._file}",
                        )
            table[owner] = {**table.get(owner, {}), **ports}

    def release(self, owner: str) -> None:
        """Give back all ports of an owner; nothing to do when it has none."""
        if self._file.exists():
            with self._opened() as table:
                table.pop(owner, None)

    def owners(self) -> list[str]:
        """Who has ports now, sorted."""
        return sorted(self._read())

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Table]:
        make_private_folder(self._file.parent)
        with locked(self._lock, "the lock of the port registry", timeout=LOCK_SECONDS):
            before = self._read()
            gone = _gone(before)
            table = {owner: dict(before[owner]) for owner in before if owner not in gone}
            yield table
            if table != before:
                write_private_file(self._file, json.dumps(table, indent=1) + "\n")

    def _read(self) -> Table:
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            table: Table = json.loads(text)
            return {
                str(owner): {str(name): int(port) for name, port in ports.items()}
                for owner, ports in table.items()
            }
        except (ValueError, AttributeError, TypeError) as error:
            raise UcpError(
                f"the port registry {self._file} is corrupt: {error}",
                next=f"rm '{self._file}' (running clusters register their ports again)",
            ) from error


def record(folder: Path, ports: Mapping[str, int]) -> None:
    """Write into a folder with which ports its processes are started."""
    if recorded(folder) != ports:
        write_private_file(folder / RECORD, json.dumps(dict(ports), indent=1) + "\n")


def recorded(folder: Path) -> dict[str, int]:
    """What was written there; nothing where none were, or the record can't be read.

    A registry is a user's: cron with another home, or a user who lost the cache, has another one.
    """
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
        return {str(name): int(port) for name, port in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def candidates(ephemeral: range, *, start: int) -> list[int]:
    """Ports that may be given, in the order of trying; start: any number, picks the first."""
    usable = [port for port in range(LOWEST, HIGHEST) if port not in NODE_PORTS]
    outside = [port for port in usable if port not in ephemeral] or usable
    first = start % len(outside)
    return outside[first:] + outside[:first]


def choose(
    ports: Iterable[int], count: int, taken: set[int], is_free: Callable[[int], bool]
) -> list[int]:
    """The first `count` ports that nobody has reserved and nobody listens on. Raises UcpError."""
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
    """Nobody listens on that port of the loopback interface, nor on all interfaces."""
    try:
        _listen(port)
    except OSError:
        return False
    return True


def refuse_taken(ports: Mapping[str, int], where: str) -> None:
    """Raises UcpError where another program listens on one of these, given by name."""
    for name, port in ports.items():
        if not can_listen(port):
            raise UcpError(
                f"port {port} of {name} in {where} is already in use by another program",
                next=(f"stop it (ss -ltnp 'sport = :{port}' shows which)"),
            )


def is_taken(port: int) -> bool:
    """Somebody listens on that port, also one that we may not listen on ourselves (below 1024)."""
    try:
        _listen(port)
    except PermissionError:
        pass
    except OSError:
        return True
    else:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        return client.connect_ex((ADDRESS, port)) == 0


def _listen(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: connections that just ended don't count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((ADDRESS, port))
        probe.listen(1)


def read_ephemeral(path: Path = EPHEMERAL) -> range:
    """The kernel's ports for outgoing connections; Linux's default where it can't be read."""
    try:
        low, high = path.read_text(encoding="ascii").split()
        return range(int(low), int(high) + 1)
    except (OSError, ValueError):
        return range(32768, 61000)


def _gone(owners: Iterable[str]) -> set[str]:
    missing = [each for each in owners if each.startswith("/") and not Path(each).exists()]
    away = [each for each in missing if not Path(each).parent.exists()]
    return {*missing} - {*away[-MOST_AWAY:]}


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
