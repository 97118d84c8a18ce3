"""Verifies deletions in the cloud itself: by name, and by the owner's tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from k8s_ucp.aws.client import Answer, AwsAccount
from k8s_ucp.aws.kind import AwsKind
from k8s_ucp.aws.kinds import rds
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.resource import OWNER_TAGS, AwsResource
from k8s_ucp.managed.external import CloudFailed, Declared
from k8s_ucp.managed.paths import at_path

Found = TypeVar("Found")


@dataclass
class ReadBack:
    """Queries of one account. A service of a region that fails twice is not called again."""

    account: AwsAccount
    _silent: dict[tuple[str, str], CloudFailed] = field(default_factory=dict)
    """By service and region."""

    def exists(self, kind: str, declared: Declared) -> bool:
        """Whether the cloud has a resource. Raises CloudFailed if it can't be determined.

        kind: with its group, as in the table. Kinds that aren't in the table were never created
        here.
        """
        found = KINDS.get(kind)
        return found is not None and bool(found.create) and self._observed(found, declared)

    def last_snapshot(self, kind: str, declared: Declared) -> str:
        """Name of the snapshot that a deleted database left in the cloud; "" if there is none.

        Raises CloudFailed.
        """
        if KINDS.get(kind) is not rds.DATABASE or declared.parameters.get("skipFinalSnapshot"):
            return ""
        name = rds.final_snapshot(declared)
        named = Declared({"region": declared.parameters.get("region")}, name, "")
        return name if self._observed(rds.SNAPSHOT, named) else ""

    def tagged(self, region: str, namespaces: Iterable[str]) -> list[tuple[str, str, str]]:
        """(kind, owner's name, id) of resources with the tags that ours get.

        Only kinds that the cloud can list by tags; namespaces: of their owners. Raises CloudFailed.
        """
        wanted = [{"Name": f"tag:{OWNER_TAGS[0]}", "Values": sorted(set(namespaces))}]
        return [
            found
            for kind in KINDS.values()
            if kind.tags
            for found in self._tagged(kind, region, [*wanted, *kind.lookup_filters])
        ]

    def _observed(self, kind: AwsKind, declared: Declared) -> bool:
        def request() -> bool:
            return AwsResource(self.account, kind).observe(declared).exists

        return self._call(kind.service, str(declared.parameters.get("region") or ""), request)

    def _tagged(
        self, kind: AwsKind, region: str, filters: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[str, str, str]]:
        def request() -> Answer:
            operation = kind.describe.operation
            return self.account.call(kind.service, region, operation, Filters=filters)

        for each in _listed(kind, self._call(kind.service, region, request)):
            tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags") or ()}
            key = kind.id_key or kind.id_at.rpartition(".")[2]
            yield kind.kind.kind, tags.get(OWNER_TAGS[1], ""), str(each.get(key, ""))

    def _call(self, service: str, region: str, request: Callable[[], Found]) -> Found:
        part = (service, region)
        if part in self._silent:
            raise self._silent[part]
        try:
            return request()
        except CloudFailed as error:
            if error.certain:
                raise
        try:
            return request()
        except CloudFailed as error:
            if not error.certain:
                self._silent[part] = error
            raise


def _listed(kind: AwsKind, answer: Any) -> Iterator[Any]:
    """All items of a response, where a description uses only the first."""
    path, _, rest = kind.describe.at.partition(".0")
    for each in at_path(answer, path) or ():
        inner = rest.removeprefix(".")
        found = at_path(each, inner) if inner else each
        if found:
            yield found
