"""The ledger: an append-only file with one JSON line for every call that may change the cloud.

Creations and deletions are verified against it, so a line is synced to disk before the response is
sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.cloud.json_lines import JsonLines

RESET = "Reset"
"""Operation of the cloud's own API: everything created before is gone."""


@dataclass(frozen=True)
class CloudLedgerEntry:
    """One call. time: seconds since 1970. status: HTTP status.

    kind and id: of the resource that it created or deleted; "" for other changes. answered: False
    if a fault dropped the response.
    """

    number: int
    time: float
    region: str
    service: str
    operation: str
    caller: str
    status: int
    kind: str = ""
    id: str = ""
    made: bool = False
    answered: bool = True

    @property
    def succeeded(self) -> bool:
        """Whether the cloud performed it."""
        return self.status < 400


class CloudLedger:
    """The ledger's file."""

    def __init__(self, file: Path) -> None:
        self._journal = JsonLines(file)

    def append(self, entry: CloudLedgerEntry) -> None:
        """Append an entry and sync it to disk."""
        self._journal.append(asdict(entry))

    def entries(self) -> Iterator[CloudLedgerEntry]:
        """All entries, oldest first."""
        return (CloudLedgerEntry(**each) for each in self._journal.items())


def remaining(entries: Iterable[CloudLedgerEntry]) -> Counter[tuple[str, str, str]]:
    """{(region, kind, id): creations minus deletions}, without zeros."""
    count: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        if entry.operation == RESET:
            count.clear()
        if entry.kind and entry.succeeded:
            count[entry.region, entry.kind, entry.id] += 1 if entry.made else -1
    return Counter({key: number for key, number in count.items() if number})
