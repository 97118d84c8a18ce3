"""Looks for what should be gone, on the core and in the clouds themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.aws.read_back import last_snapshot, still_there, tagged
from k8s_ucp.context import StartContext
from k8s_ucp.engine.foresight import Foreseen
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.resource_conditions import last_error
from k8s_ucp.kube import Object
from k8s_ucp.managed.reconcile import EXTERNAL_NAME
from k8s_ucp.steps.teardown.abandonment import abandon_outside, abandoned_uids
from k8s_ucp.steps.teardown.cloud_record import CloudRecord, RecordedResource
from k8s_ucp.steps.teardown.outside import DNS_RECORD
from k8s_ucp.steps.teardown.owned_objects import OwnedObjects, foreseen_objects, named

SHOWN = 20
KEPT = "kept"
"""In the journal: the clouds were seen empty, but for this."""


def _foresee_verification(context: StartContext) -> Iterator[Foreseen]:
    if foreseen_objects(context).managed or CloudRecord(context.state.cloud_record).resources():
        where = "the simulated cloud" if context.simulates_cloud else "the core cluster"
        yield Foreseen("wait", "empty clouds", f"{where} is asked whether anything is left")


@step("Verify that nothing is left in the clouds", foresee=_foresee_verification)
def verify_clouds_empty(context: StartContext, report: Report) -> None:
    """Raises UcpError that lists what is left, with its own last error."""
    record = CloudRecord(context.state.cloud_record)
    # What was given up is told as such, and not looked for: it may well be there.
    abandon_outside(context, record.resources())
    given_up = abandoned_uids(context)
    recorded = [each for each in record.resources() if each.uid not in given_up]
    managed = OwnedObjects(context).managed
    known = {each.uid for each in recorded}
    left = [
        f"{named(each)}: {last_error(each) or 'it is still on the core cluster'}"
        for each in managed
        if each["metadata"]["uid"] in known
    ]
    left += [
        f"{each}: the cluster did not respond before it was deleted"
        for each in recorded
        if each.cluster and each.kind != DNS_RECORD
    ]
    context.dns_records = [each.name for each in recorded if each.kind == DNS_RECORD]
    others = [each for each in managed if each["metadata"]["uid"] not in known]
    if context.simulates_cloud:
        account = context.cloud.account()
        taken = (last_snapshot(account, each.kind, each.declared()) for each in recorded)
        context.snapshots = [each for each in taken if each]
        known_there = {each.external_name for each in record.resources() if each.uid in given_up}
        left += _left_in_aws(account, recorded, others, known_there)
    if left:
        more = [f"and {len(left) - SHOWN} more"] if len(left) > SHOWN else []
        raise UcpError(
            "\n  ".join(["still there:", *left[:SHOWN], *more]),
            next="fix what is named, or delete it in its cloud, or give it up: --abandon NAME",
        )
    record.remove()
    # What claims are made of goes and stays with them.
    context.kept += [named(each) for each in others if not each["metadata"].get("ownerReferences")]
    context.read_back = len(recorded) - len(context.dns_records)
    context.journal.keep(**{KEPT: context.kept})
    report(f"{context.read_back} resources were looked for; none is left")


def _left_in_aws(
    account: AwsAccount,
    recorded: Sequence[RecordedResource],
    kept: Sequence[Object],
    given_up: Collection[str],
) -> Iterator[str]:
    """By the names of what was deleted, and by the tags of whatever else may have been made."""
    seen = set()
    for each in recorded:
        declared = each.declared()
        if declared.name and (why := still_there(account, each.kind, declared)):
            seen.add(each.external_name)
            yield f"{each}: {why}"
    stays = {(item["metadata"].get("annotations") or {}).get(EXTERNAL_NAME) for item in kept}
    stays |= {*given_up}
    regions = {each.region for each in recorded if each.region}
    namespaces = {each.namespace for each in recorded if each.namespace}
    if not namespaces:
        return
    for kind, owner, id in tagged(account, regions, namespaces):
        if id not in stays | seen:
            yield f"{kind} {id}: the cloud still has it, with the tag of {owner}"
