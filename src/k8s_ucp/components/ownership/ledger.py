"""Records ucp's objects on an existing core cluster; `ucp stop` deletes only these.

An object is recorded before it is applied, and only if it did not exist. The file can be rebuilt
while our mark is on the cluster (steps/startup/claim_core.py): objects older than the mark are
never ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.components.manifests import Manifest
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.kube import Kube, NotFound, Object
from k8s_ucp.workspace import write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

WORKERS = 8
"""Number of parallel requests."""


@dataclass(frozen=True, order=True)
class LedgerEntry:
    """One object. namespace: empty for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, item: Object | Manifest) -> LedgerEntry:
        if isinstance(item, Manifest):
            return cls(item.api_version, item.kind, item.namespace or "", item.name)
        about = item["metadata"]
        return cls(item["apiVersion"], item["kind"], about.get("namespace", ""), about["name"])

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{where}"


class Ledger:
    """The ledger of one core cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> frozenset[LedgerEntry]:
        """Raises UcpError if the file is damaged: ignoring it would leave objects behind."""
        try:
            return frozenset(
                record_of(LedgerEntry, each) for each in parse_json(self._path.read_text("utf-8"))
            )
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError, TypeError) as error:
            raise UcpError(
                f"{self._path}, the record of ucp's objects on the core cluster, is corrupt",
                next=f"{command_line('rm', self._path)} && ucp start (rewrites it)",
            ) from error

    def add(self, entries: Iterable[LedgerEntry]) -> None:
        """Record entries in addition to the existing ones."""
        write_private_json(self._path, sorted({*self.entries(), *entries}))

    def remove(self) -> None:
        """Delete the file: no object of ours is left."""
        self._path.unlink(missing_ok=True)


def find_all(kube: Kube, entries: Iterable[LedgerEntry]) -> list[Object]:
    """The existing objects of these entries, in their order."""
    with ThreadPoolExecutor(WORKERS, "find") as pool:
        return [each for each in pool.map(lambda each: find(kube, each), sorted(entries)) if each]


def find(kube: Kube, entry: LedgerEntry) -> Object | None:
    """The object; None if it, or its kind, doesn't exist."""
    try:
        kind = kube.kind_of(entry.api_version, entry.kind)
        return kube.get(kind, entry.name, entry.namespace or None)
    except NotFound:
        return None
