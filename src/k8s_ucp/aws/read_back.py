"""Looks in the cloud itself for what should be gone: by its names, and by its owner's tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.aws.kind import AwsKind
from k8s_ucp.aws.kinds import rds
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.resource import OWNER_TAGS, AwsResource
from k8s_ucp.managed.external import CloudFailed, Declared
from k8s_ucp.managed.paths import at_path


def still_there(account: AwsAccount, kind: str, declared: Declared) -> str:
    """Why a resource counts as left: that the cloud has it, or didn't tell; "": it is gone.

    kind: with its group, as in the table. What isn't in the table was never made here.
    """
    found = KINDS.get(kind)
    if found is None or not found.create:
        return ""
    try:
        there = AwsResource(account, found).observe(declared).exists
    except CloudFailed as error:
        return f"it can't be read: {error.message}"
    return "the cloud still has it" if there else ""


def last_snapshot(account: AwsAccount, kind: str, declared: Declared) -> str:
    """Name of the snapshot that a deleted database left in the cloud; "" for none.

    Raises CloudFailed.
    """
    found = KINDS.get(kind)
    if found is not rds.DATABASE or declared.parameters.get("skipFinalSnapshot"):
        return ""
    name = rds.final_snapshot(declared)
    named = Declared({"region": declared.parameters.get("region")}, name, "")
    return name if AwsResource(account, rds.SNAPSHOT).observe(named).exists else ""


def tagged(
    account: AwsAccount, regions: Iterable[str], namespaces: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """(kind, owner's name, id) of what carries the tags that our resources get.

    Only kinds that the cloud lists by tags; namespaces: of their owners. Raises CloudFailed.
    """
    wanted = [{"Name": f"tag:{OWNER_TAGS[0]}", "Values": sorted(set(namespaces))}]
    for region in sorted(set(regions)):
        for kind in KINDS.values():
            if not kind.tags:
                continue
            asked = {"Filters": [*wanted, *kind.lookup_filters]}
            answer = account.call(kind.service, region, kind.describe.operation, **asked)
            for each in _listed(kind, answer):
                tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags") or ()}
                key = kind.id_key or kind.id_at.rpartition(".")[2]
                yield kind.kind.kind, tags.get(OWNER_TAGS[1], ""), str(each.get(key, ""))


def _listed(kind: AwsKind, answer: Any) -> Iterator[Any]:
    """All that an answer has where a description looks at the first."""
    path, _, rest = kind.describe.at.partition(".0")
    for each in at_path(answer, path) or ():
        inner = rest.removeprefix(".")
        found = at_path(each, inner) if inner else each
        if found:
            yield found
