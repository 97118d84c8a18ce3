"""Records a topology's cloud resources before they are deleted.

Once its object is deleted, the core no longer knows what to look for in the cloud.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.kube import Object, annotations_of, mapping_in
from k8s_ucp.managed.external import Declared
from k8s_ucp.managed.policies import policies_of
from k8s_ucp.names import EXTERNAL_NAME
from k8s_ucp.workspace import write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

DNS_RECORD = "DNSRecord"
UNSEEN = "Unseen"
"""Kind that stands for the unknown resources of a cluster that doesn't respond."""


@dataclass(frozen=True)
class RecordedResource:
    """One managed resource, or one that an app cluster created.

    kind: with its group. parameters: its forProvider.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    external_name: str
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    cluster: str = ""
    """App cluster whose controllers created it; empty for managed resources."""

    @classmethod
    def of(cls, item: Object) -> RecordedResource:
        about = item["metadata"]
        return cls(
            f"{item['kind']}.{item['apiVersion'].partition('/')[0]}",
            about.get("namespace", ""),
            about["name"],
            str(about.get("uid", "")),
            str(annotations_of(item).get(EXTERNAL_NAME, "")),
            mapping_in(item, "spec", "forProvider"),
        )

    def declared(self) -> Declared:
        return Declared(self.parameters, self.external_name, self.name, self.namespace)

    @property
    def region(self) -> str:
        return str(self.parameters.get("region") or "")

    @property
    def names(self) -> frozenset[str]:
        """Names for `--abandon`; those of its region and cluster stand for everything in these."""
        kind = self.kind.partition(".")[0]
        found = {self.name, f"{kind}/{self.name}", self.external_name, self.region, self.cluster}
        return frozenset(found - {""})

    @property
    def handle(self) -> str:
        """The name to suggest in a command: of this resource alone, if it has one."""
        if self.kind == UNSEEN:
            return self.cluster
        return self.external_name or f"{self.kind.partition('.')[0]}/{self.name}"

    def __str__(self) -> str:
        where = f" in {self.region}" if self.region else ""
        where += f" of {self.cluster}" if self.cluster else ""
        return f"{self.kind.partition('.')[0]} {self.external_name or self.name}{where}"


class CloudRecord:
    """The record of one topology."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def resources(self) -> list[RecordedResource]:
        """The recorded resources. Raises UcpError if the file is corrupt."""
        try:
            found = parse_json(self._path.read_text("utf-8"))
            return [record_of(RecordedResource, each) for each in found]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise UcpError(
                f"{self._path}, the record of what is deleted in clouds, is corrupt",
                next=command_line("rm", self._path)
                + ", then look in the clouds' consoles for what is left",
            ) from error

    def add(self, items: Iterable[Object]) -> None:
        """Record those that will be deleted in the cloud, in addition to earlier ones."""
        self.add_resources(
            RecordedResource.of(each) for each in items if policies_of(each).may("Delete")
        )

    def add_resources(self, found: Iterable[RecordedResource]) -> None:
        """Add resources, replacing those with the same UIDs."""
        known = {each.uid: each for each in self.resources()} | {each.uid: each for each in found}
        self._write(known.values())

    def remove_deleted(self, uids: Collection[str]) -> None:
        """Remove resources that were confirmed to be deleted."""
        if uids:
            self._write([each for each in self.resources() if each.uid not in uids])

    def _write(self, found: Iterable[RecordedResource]) -> None:
        write_private_json(self._path, list(found))

    def remove(self) -> None:
        """Delete the record, once everything was confirmed to be deleted."""
        self._path.unlink(missing_ok=True)
