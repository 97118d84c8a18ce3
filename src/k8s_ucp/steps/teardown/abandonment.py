"""Abandoned resources of a teardown, and how its waits end.

A resource that can't be deleted keeps its finalizer, and so its core cluster. If it is named with
`--abandon`, it is recorded and its finalizers are removed: the core forgets it, the cloud doesn't.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import unfinished_at
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.errors import DeadlineExceeded, UsageError, command_line, some_of
from k8s_ucp.inspect.doctor.advice import kubectl_on
from k8s_ucp.inspect.resource_conditions import kubectl_words, last_error
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.kube import Conflict, NotFound, Object, labels_of
from k8s_ucp.names import COMPOSITE, ENVIRONMENT
from k8s_ucp.steps.backup.stopped_core import at_stake
from k8s_ucp.steps.teardown.cloud_record import CloudRecord, RecordedResource
from k8s_ucp.timestamps import stamp

GRACE_SECONDS = 20.0
"""How long abandoned resources may still be deleted, in case their cloud responds again."""
SHOWN = 3
"""Stuck resources for which an error suggests commands."""
PLAN = "destroy"
"""Name of the teardown's plan, in the journal."""
NAMED = "named"
"""Key in the journal: names of resources that were abandoned, or may be."""
Pending = Callable[[], tuple[str, Sequence[Object]]]
"""Returns what is left, in words, and as objects."""


def known_of_core(context: StartContext) -> list[str]:
    """What a silent core manages, according to the topology, the repository and earlier runs."""
    recorded = CloudRecord(context.state.cloud_record).resources()
    return sorted({*at_stake(context), *map(str, recorded)})


def is_abandoned(context: StartContext, item: Object) -> bool:
    """Whether one of its names is abandoned."""
    return bool(context.teardown.abandon & names_of(context, item))


def names_of(context: StartContext, item: Object) -> frozenset[str]:
    """Names for `--abandon`: its name, with or without the kind, and its name in the cloud.

    The name of its region, cluster or claim stands for everything in these.
    """
    labels = labels_of(item)
    environment, claim = labels.get(ENVIRONMENT), labels.get(COMPOSITE)
    found = set(RecordedResource.of(item).names)
    if environment:
        found.add(context.topology.app_cluster(environment))
    if claim:
        # The claim may be deleted before its parts.
        found.add(claim)
    return frozenset(found)


def check_named(context: StartContext, items: Iterable[Object], others: Iterable[str]) -> None:
    """Check that everything to abandon exists, or was known to an earlier run of this teardown.

    What an earlier run abandoned or deleted is no longer on the core. Raises UsageError, UcpError.
    """
    known = {name for each in items for name in names_of(context, each)} | {*others}
    for given_up in AbandonedRecord(context.state.abandoned).resources():
        known.update(given_up.known_by)
    for recorded in CloudRecord(context.state.cloud_record).resources():
        known |= recorded.names
    last = unfinished_at(context.state.journal, PLAN)
    known.update(last.data.get(NAMED, ()) if last else ())
    if unknown := sorted(context.teardown.abandon - known):
        raise UsageError(
            f"--abandon: nothing that would be deleted is called {', '.join(unknown)}",
            next="ucp destroy --plan lists what is",
        )


def keep_names(context: StartContext, names: Iterable[str] = ()) -> None:
    """Store names, so that a rerun may abandon what this run abandons or reports."""
    known = {*context.journal.data.get(NAMED, ()), *context.teardown.abandon, *names}
    context.journal.keep(**{NAMED: sorted(known)})


def abandon(context: StartContext, items: Iterable[Object]) -> None:
    """Record the objects that are abandoned, and remove their finalizers. Raises KubeError."""
    chosen = [each for each in items if is_abandoned(context, each)]
    note_abandoned(context, chosen)
    for each in chosen:
        about = each["metadata"]
        kind = context.kube.kind_of(each["apiVersion"], each["kind"])
        change = {"metadata": {"finalizers": None, "uid": about["uid"]}}
        with suppress(NotFound, Conflict):
            context.kube.patch(kind, about["name"], about.get("namespace"), change)


def note_abandoned(context: StartContext, items: Iterable[Object], why: str = "") -> None:
    """Record objects as abandoned. why: instead of their own last errors. Raises UcpError."""
    since = stamp(time.time())
    AbandonedRecord(context.state.abandoned).add(
        AbandonedResource(
            str(RecordedResource.of(each)),
            why or last_error(each),
            since,
            each["metadata"]["uid"],
            sorted(names_of(context, each)),
        )
        for each in items
    )


def abandoned_uids(context: StartContext) -> set[str]:
    """UIDs of what was abandoned, now or earlier. Raises UcpError."""
    return {each.uid for each in AbandonedRecord(context.state.abandoned).resources()} - {""}


def wait_deleted(
    context: StartContext, what: str, pending: Pending, report: Report, *, seconds: float
) -> None:
    """Wait until nothing is left; after a grace period, abandoned objects are released.

    Raises DeadlineExceeded with commands for stuck resources.
    """
    left: Sequence[Object] = ()
    began = time.monotonic()

    def words() -> str:
        nonlocal left
        said, left = pending()
        if said and time.monotonic() - began > GRACE_SECONDS:
            abandon(context, left)
        return said

    seconds = context.teardown.timeout(seconds)
    try:
        context.wait(what, words, report, seconds=seconds, pause=1.0)
    except DeadlineExceeded as error:
        error.next = commands_for(context, left)
        raise


def commands_for(context: StartContext, left: Sequence[Object]) -> str:
    """Commands for what is stuck. Pure, except for the path of the core's kubeconfig."""
    core = context.topology.core_cluster
    kubectl = kubectl_on(core, str(context.state.kubeconfig(core)))
    looks = [f"{kubectl} {kubectl_words('describe', each)}" for each in left[:SHOWN]]
    names = [f"{each['kind']}/{each['metadata']['name']}" for each in left]
    given_up = f"; or abandon what can't be deleted: {command_for(context, names)}"
    return f"fix the cause ({some_of(looks) or 'ucp doctor'}){given_up if names else ''}"


def command_for(context: StartContext, names: Iterable[str]) -> str:
    """The command that repeats this run and abandons these names as well. Pure."""
    data = ["--delete-data"] if context.teardown.delete_data else []
    abandoned = context.teardown.abandon
    given = [*sorted(abandoned), *(each for each in names if each not in abandoned)]
    flags = (word for each in given for word in ("--abandon", each))
    return command_line("ucp", "destroy", *data, *flags)
