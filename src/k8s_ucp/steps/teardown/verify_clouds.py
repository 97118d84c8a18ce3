"""Verifies that the deleted resources are gone, on the core and in the clouds themselves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from k8s_ucp.aws.read_back import ReadBack
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.resource_conditions import last_error
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.inspect.teardown.destruction import Destruction, note_destruction
from k8s_ucp.kube import Object, annotations_of
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.names import EXTERNAL_NAME
from k8s_ucp.steps.teardown.abandonment import (
    abandon,
    abandoned_uids,
    command_for,
    is_abandoned,
    keep_names,
    names_of,
)
from k8s_ucp.steps.teardown.cloud_record import (
    DNS_RECORD,
    UNSEEN,
    CloudRecord,
    RecordedResource,
)
from k8s_ucp.steps.teardown.owned_objects import OwnedObjects, named, planned_objects
from k8s_ucp.timestamps import stamp

SHOWN = 20
REPORTED = ("read_back", "dns_records", "snapshots")
"""Fields of the context that the final report needs, also after an interruption from here on."""
_STAYS = "the cloud still has it"


@dataclass(frozen=True)
class Leftover:
    """A resource that isn't confirmed to be deleted. what: in words; why: it counts as left."""

    what: str
    why: str
    names: frozenset[str]
    """Names by which `--abandon` accepts it."""
    handle: str
    """The name to suggest in a command."""
    uid: str = ""
    part: bool = False
    """It stands for a part of a cloud that can't be read; `handle` means everything in it."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def _preview_verification(context: StartContext) -> Iterator[PlannedChange]:
    if planned_objects(context).managed or CloudRecord(context.state.cloud_record).resources():
        where = "the simulated cloud" if context.simulates_cloud else "the core cluster"
        yield PlannedChange(
            "wait", "empty clouds", f"{where} is checked for resources that are left"
        )


@step("Verify that nothing is left in the clouds", preview=_preview_verification)
def verify_clouds_empty(context: StartContext, report: Report) -> None:
    """Raises UcpError, which lists what is left, with the last errors."""
    record = CloudRecord(context.state.cloud_record)
    # Abandoned resources are reported as such, and not looked for, since they may still exist.
    given_up = abandoned_uids(context)
    recorded = [each for each in record.resources() if each.uid not in given_up]
    managed = OwnedObjects(context).managed
    known = {each.uid for each in recorded}
    stuck = [each for each in managed if each["metadata"]["uid"] in known]
    others = [each for each in managed if each["metadata"]["uid"] not in known]
    abandon(context, stuck)
    left = [*_on_core(context, stuck), *_of_clusters(recorded)]
    if context.simulates_cloud:
        left += _in_simulated(context, recorded, others)
    if left := give_up(context, left):
        keep_names(context, {name for each in left for name in each.names})
        raise UcpError(_listed(left), next=_advice(context, left))
    record.remove()
    given_up = abandoned_uids(context)
    recorded = [each for each in recorded if each.uid not in given_up]
    context.teardown.dns_records = [each.name for each in recorded if each.kind == DNS_RECORD]
    # Parts of claims are kept or deleted with their claims.
    context.teardown.kept += [
        named(each) for each in others if not each["metadata"].get("ownerReferences")
    ]
    context.teardown.read_back = len(recorded) - len(context.teardown.dns_records)
    note_how_far(context, ended=False)
    report(f"checked {context.teardown.read_back} resources; none is left")


def note_how_far(context: StartContext, *, ended: bool) -> None:
    """Record that the clouds are empty. ended: nothing is left to do. Raises UcpError."""
    details = {name: getattr(context.teardown, name) for name in REPORTED}
    found = Destruction(stamp(time.time()), tuple(context.teardown.kept), ended, details)
    note_destruction(context.state.destroyed, found)


def _listed(left: Sequence[Leftover]) -> str:
    """The error text, parts of clouds first, since they may explain the rest."""
    lines = sorted(left, key=lambda each: not each.part)
    more = [f"and {len(left) - SHOWN} more"] if len(left) > SHOWN else []
    return "\n  ".join(
        ["still exists, or could not be verified as deleted:", *map(str, lines[:SHOWN]), *more]
    )


def _advice(context: StartContext, left: Sequence[Leftover]) -> str:
    parts = {each.handle for each in left if each.part}
    handles = (next(iter(each.names & parts), each.handle) for each in left)
    command = command_for(context, dict.fromkeys(handles))
    return f"fix the cause, or delete it in its cloud; or abandon it: {command}"


def give_up(context: StartContext, left: Iterable[Leftover]) -> list[Leftover]:
    """Record what is abandoned; returns the rest. Raises UcpError."""
    left = list(left)
    chosen = [each for each in left if each.names & context.teardown.abandon]
    since = stamp(time.time())
    AbandonedRecord(context.state.abandoned).add(
        AbandonedResource(each.what, each.why, since, each.uid, sorted(each.names))
        for each in chosen
    )
    return [each for each in left if each not in chosen]


def _on_core(context: StartContext, stuck: Iterable[Object]) -> Iterator[Leftover]:
    for each in stuck:
        if not is_abandoned(context, each):
            about = each["metadata"]
            why = last_error(each) or "it is still on the core cluster"
            handle = f"{each['kind']}/{about['name']}"
            yield Leftover(named(each), why, names_of(context, each), handle, about["uid"])


def _of_clusters(recorded: Iterable[RecordedResource]) -> Iterator[Leftover]:
    for each in recorded:
        if each.cluster and each.kind != DNS_RECORD:
            silent = "its cluster did not respond before it was deleted"
            kept = "its cluster was deleted before its deletion was confirmed"
            yield _leftover(each, silent if each.kind == UNSEEN else kept)


def _in_simulated(
    context: StartContext, recorded: Sequence[RecordedResource], kept: Sequence[Object]
) -> Iterator[Leftover]:
    """A cloud, or a part of it, that can't be read counts as left over, never as empty."""
    try:
        read_back = ReadBack(context.cloud.account())
    except UcpError as error:
        for cloud in context.topology.spec.clouds.simulated:
            yield _unseen(f"everything in cloud {cloud}", cloud, error)
        return
    seen: set[str] = set()
    for each in (each for each in recorded if not each.cluster):
        try:
            if read_back.exists(each.kind, each.declared()):
                seen.add(each.external_name)
                yield _leftover(each, _STAYS)
            elif snapshot := read_back.last_snapshot(each.kind, each.declared()):
                context.teardown.snapshots.append(snapshot)
        except CloudFailed as error:
            seen.add(each.external_name)
            yield _leftover(each, f"the check failed: {error.message}")
    notes = (annotations_of(each) for each in kept)
    known = {each.get(EXTERNAL_NAME) for each in notes} | seen
    yield from _tagged(context, read_back, known)


def _tagged(
    context: StartContext, read_back: ReadBack, known: Iterable[str | None]
) -> Iterator[Leftover]:
    """Resources found by their tags, wherever recorded resources were.

    known: ids of resources that are reported already, or kept.
    """
    resources = CloudRecord(context.state.cloud_record).resources()
    namespaces = {each.namespace for each in resources if each.namespace}
    if not namespaces:
        return
    reported = {*known}
    for given_up in AbandonedRecord(context.state.abandoned).resources():
        reported.update(given_up.known_by)
    for region in sorted({each.region for each in resources if each.region}):
        try:
            found = read_back.tagged(region, namespaces)
        except CloudFailed as error:
            yield _unseen(f"everything in region {region}", region, error)
            continue
        for kind, owner, id in found:
            if id not in reported:
                why = f"{_STAYS}, with the tag of {owner}"
                names = frozenset({id, f"{kind}/{owner}", region})
                yield Leftover(f"{kind} {id} in {region}", why, names, id)


def _leftover(each: RecordedResource, why: str) -> Leftover:
    return Leftover(str(each), why, each.names, each.handle, each.uid)


def _unseen(what: str, handle: str, error: UcpError) -> Leftover:
    why = f"the check failed: {error.message}"
    return Leftover(what, why, frozenset({handle}), handle, part=True)
