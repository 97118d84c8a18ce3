"""Stops Argo CD's sync of the core cluster, then drains and deregisters the environments.

Apps are deleted first, while the credentials of their clusters are valid, and with them load
balancers and volumes. As sync is off, deleted objects are not restored meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from k8s_ucp.components import argocd
from k8s_ucp.components.ownership.tracking import is_on_core
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import DeadlineExceeded, some_of
from k8s_ucp.inspect.applications import find_problem, reason
from k8s_ucp.kube import APPLICATION, Conflict, Kube, NotFound, Object
from k8s_ucp.names import ROOT_APPLICATION
from k8s_ucp.reconciler.draining import end_sync
from k8s_ucp.reconciler.registration.forced_deregistration import TEARDOWN, forget, registered
from k8s_ucp.steps.teardown.abandonment import command_for, wait_deleted
from k8s_ucp.steps.teardown.cloud_record import CloudRecord
from k8s_ucp.steps.teardown.external_resources import still_outside

SYNC_SECONDS = 60.0
DRAIN_SECONDS = 600.0


def _preview_pause(context: StartContext) -> Iterator[PlannedChange]:
    for each in _keepers(context.applications()):
        name = each["metadata"]["name"]
        if name == ROOT_APPLICATION:
            yield PlannedChange(
                "delete",
                f"Application {name}",
                "so that it does not restore what is deleted; its resources are kept for now",
            )
        else:
            yield PlannedChange("change", f"Application {name}", "its automated sync is turned off")


@step("Turn off automation on the core cluster", preview=_preview_pause)
def pause_automation(context: StartContext, report: Report) -> None:
    """Root is deleted first, since it would turn automated sync on again; a start restores it."""
    for each in _keepers(context.applications()):
        name = each["metadata"]["name"]
        report(name)
        with suppress(NotFound, Conflict):
            if name == ROOT_APPLICATION:
                # With a finalizer, its deletion would delete everything that it manages.
                _patch(context.kube, name, {"metadata": {"finalizers": None}})
                uid = each["metadata"]["uid"]
                context.kube.delete(APPLICATION, name, argocd.NAMESPACE, uid=uid)
            else:
                _patch(context.kube, name, {"spec": {"syncPolicy": {"automated": None}}})

    def busy() -> str:
        running = [each for each in _keepers(context.applications()) if _syncs(each)]
        for each in running:
            # A failing sync would be retried without end.
            end_sync(context.kube, each)
        return some_of([each["metadata"]["name"] for each in running])

    context.wait(
        "end of running syncs", busy, report, seconds=SYNC_SECONDS, next="see `ucp logs argocd`"
    )


def _preview_drain(context: StartContext) -> Iterator[PlannedChange]:
    clusters = registered(context.kube)
    for each in _deployed(context, clusters):
        cluster = each["spec"]["destination"].get("name")
        what = f"Application {each['metadata']['name']}"
        yield PlannedChange("delete", what, f"with everything that it deployed to {cluster}")
    for cluster in sorted(clusters):
        yield PlannedChange("wait", f"drain of {cluster}", "its Applications are deleted first")
        yield PlannedChange("delete", f"registration of {cluster}", "after the drain")


@step("Drain and deregister the environments", preview=_preview_drain)
def drain_environments(context: StartContext, report: Report) -> None:
    for cluster, registration in sorted(registered(context.kube).items()):
        report(cluster)
        forget(context.kube, registration, TEARDOWN)

    def pending() -> tuple[str, Sequence[Object]]:
        clusters = registered(context.kube)
        if not clusters:
            return "", ()
        left = _deployed(context, clusters)
        words = some_of([*map(_words, left)]) or "being deregistered"
        return f"{some_of(sorted(clusters))}: {words}", left

    wait_deleted(context, "drain of the environments", pending, report, seconds=DRAIN_SECONDS)
    _await_released(context, report)


def _await_released(context: StartContext, report: Report) -> None:
    """Wait while the clusters still exist: their controllers delete load balancers and volumes."""
    record = CloudRecord(context.state.cloud_record)

    def pending() -> str:
        left, gone = still_outside(context, record.resources())
        record.remove_deleted(gone)
        waits = [each for each in left if not each.names & context.teardown.abandon]
        names[:] = [each.handle for each in waits]
        return some_of(waits)

    names: list[str] = []
    what = "deletion of load balancers and volumes by their clusters"
    seconds = context.teardown.timeout(DRAIN_SECONDS)
    try:
        context.wait(what, pending, report, seconds=seconds, pause=1.0)
    except DeadlineExceeded as error:
        error.next = f"fix what is named (ucp doctor); or give it up: {command_for(context, names)}"
        raise


def _patch(kube: Kube, name: str, change: Object) -> None:
    kube.patch(APPLICATION, name, argocd.NAMESPACE, change)


def _keepers(applications: Iterable[Object]) -> list[Object]:
    """Applications that manage objects on the core, root first."""
    found = [each for each in applications if is_on_core(each)]
    return sorted(found, key=lambda each: each["metadata"]["name"] != ROOT_APPLICATION)


def _deployed(context: StartContext, clusters: Iterable[str]) -> list[Object]:
    """Applications on these clusters."""
    names = set(clusters)
    return [
        each
        for each in context.applications()
        if (each["spec"].get("destination") or {}).get("name") in names
    ]


def _words(application: Object) -> str:
    why = find_problem(application) or reason(application)
    name = f"Application {application['metadata']['name']}"
    return f"{name} ({why})" if why else name


def _syncs(application: Object) -> bool:
    """Whether a sync is running; the status may be that of a terminated sync."""
    return "operation" in application
