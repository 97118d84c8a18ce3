"""What a person gives up in a teardown, and how each of its waits ends.

Something that can't be deleted keeps its finalizer, and with it the core. Who names it with
`--abandon` has it written down, and its finalizers taken off: the core forgets it, its cloud
doesn't.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.errors import DeadlineExceeded, UsageError, some_of
from k8s_ucp.inspect.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.inspect.doctor.advice import kubectl_on
from k8s_ucp.inspect.resource_conditions import kubectl_words, last_error
from k8s_ucp.kube import Conflict, NotFound, Object
from k8s_ucp.names import ENVIRONMENT
from k8s_ucp.reconciler.backup.core_state import COMPOSITE
from k8s_ucp.steps.teardown.cloud_record import RecordedResource

GRACE_SECONDS = 20.0
"""So long what a person names may still be deleted: its cloud may have come back."""
SHOWN = 3
"""So many of what is stuck get their commands."""
Look = Callable[[], tuple[str, Sequence[Object]]]
"""What is left, in words, and the objects that are."""


def is_abandoned(context: StartContext, item: Object) -> bool:
    """By its name, with its kind or alone, by that in the cloud, or its cluster's or claim's."""
    return bool(context.abandon & set(names_of(context, item)))


def names_of(context: StartContext, item: Object) -> list[str]:
    """What it may be called by in `--abandon`."""
    about = item["metadata"]
    found = [about["name"], f"{item['kind']}/{about['name']}"]
    if external := RecordedResource.of(item).external_name:
        found.append(external)
    labels = about.get("labels") or {}
    if environment := labels.get(ENVIRONMENT):
        found.append(context.topology.app_cluster(environment))
    if claim := labels.get(COMPOSITE):
        # A claim may be gone before what it is made of.
        found.append(claim)
    return found


def check_named(context: StartContext, items: Iterable[Object], others: Iterable[str]) -> None:
    """Everything that is to be given up exists, or was given up before. Raises UsageError."""
    known = {name for each in items for name in names_of(context, each)} | {*others}
    record = AbandonedRecord(context.state.abandoned).resources()
    words = {word for each in record for word in each.what.split()}
    if unknown := sorted(context.abandon - known - words):
        raise UsageError(
            f"--abandon: nothing that would be deleted is called {', '.join(unknown)}",
            next="ucp destroy --plan lists what is",
        )


def abandon(context: StartContext, items: Iterable[Object]) -> None:
    """Write down those that a person names, and let the core forget them. Raises KubeError."""
    chosen = [each for each in items if is_abandoned(context, each)]
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    AbandonedRecord(context.state.abandoned).add(
        AbandonedResource(
            str(RecordedResource.of(each)), last_error(each), since, each["metadata"]["uid"]
        )
        for each in chosen
    )
    for each in chosen:
        about = each["metadata"]
        kind = context.kube.kind_of(each["apiVersion"], each["kind"])
        change = {"metadata": {"finalizers": None, "uid": about["uid"]}}
        with suppress(NotFound, Conflict):
            context.kube.patch(kind, about["name"], about.get("namespace"), change)


def abandon_outside(context: StartContext, recorded: Iterable[RecordedResource]) -> None:
    """Write down what clusters made that a person names: no object keeps it any more."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    AbandonedRecord(context.state.abandoned).add(
        AbandonedResource(str(each), "its cluster did not respond", since, each.uid)
        for each in recorded
        if each.cluster and context.abandon & {each.cluster, each.name, each.external_name}
    )


def abandoned_uids(context: StartContext) -> set[str]:
    """Of what was given up, now or earlier. Raises UcpError."""
    return {each.uid for each in AbandonedRecord(context.state.abandoned).resources()} - {""}


def wait_gone(
    context: StartContext, what: str, look: Look, report: Report, *, seconds: float
) -> None:
    """Wait until nothing is left; what is named gets a grace, and is given up then.

    Raises DeadlineExceeded with the commands for what is stuck.
    """
    left: Sequence[Object] = ()
    began = time.monotonic()

    def words() -> str:
        nonlocal left
        said, left = look()
        if said and time.monotonic() - began > GRACE_SECONDS:
            abandon(context, left)
        return said

    seconds = seconds if context.longest_wait is None else context.longest_wait
    try:
        context.wait(what, words, report, seconds=seconds, pause=1.0)
    except DeadlineExceeded as error:
        error.next = commands_for(context, left)
        raise


def commands_for(context: StartContext, left: Sequence[Object]) -> str:
    """What to type about what is stuck. Pure, but for where the core's kubeconfig lies."""
    core = context.topology.core_cluster
    kubectl = kubectl_on(core, str(context.state.kubeconfig(core)))
    looks = [f"{kubectl} {kubectl_words('describe', each)}" for each in left[:SHOWN]]
    named = " ".join(f"--abandon {each['kind']}/{each['metadata']['name']}" for each in left)
    given_up = f"; or give up what can't be deleted: ucp destroy {named}" if named else ""
    return f"fix what is named ({some_of(looks) or 'ucp doctor'}){given_up}"
