"""The ledger: every call that may have changed the cloud, one JSON line each, only ever added to.

It is the truth that creations and deletions are counted against, so a line is on the disk before
its answer leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.cloud.json_lines import JsonLines

RESET = "Reset"
"""Operation of the layer's own: nothing is left of what was made before."""


@dataclass(frozen=True)
class CloudLedgerEntry:
    """One call. time: seconds since 1970. kind and id: of the resource that it made or deleted,
    "" for other changes. status: of HTTP. answered: False where the answer was lost on purpose.
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
        """The cloud did it."""
        return self.status < 400


class CloudLedger:
    """A journal of entries."""

    def __init__(self, file: Path) -> None:
        self._journal = JsonLines(file)

    def append(self, entry: CloudLedgerEntry) -> None:
        """Write an entry to the disk."""
        self._journal.append(asdict(entry))

    def entries(self) -> Iterator[CloudLedgerEntry]:
        """All, oldest first."""
        return (CloudLedgerEntry(**each) for each in self._journal.items())


def remaining(entries: Iterable[CloudLedgerEntry]) -> Counter[tuple[str, str, str]]:
    """{(region, kind, id): how often it was made more than deleted}, zeros left out."""
    count: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        if entry.operation == RESET:
            count.clear()
        if entry.kind and entry.succeeded:
            count[entry.region, entry.kind, entry.id] += 1 if entry.made else -1
    return Counter({place: number for place, number in count.items() if number})
