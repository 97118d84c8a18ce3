"""Deletes the core cluster, last, since only it knows what is in the clouds."""

from __future__ import annotations

from collections.abc import Iterator

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.steps.backup.stopped_core import abandon_core
from k8s_ucp.steps.shutdown.stop import forget_access
from k8s_ucp.steps.teardown.abandonment import known_of_core
from k8s_ucp.steps.teardown.owned_objects import planned_objects
from k8s_ucp.steps.teardown.verify_clouds import note_how_far


def _preview_loss(context: StartContext) -> Iterator[PlannedChange]:
    for each in known_of_core(context):
        yield PlannedChange(
            "keep", each, "the core cluster is abandoned: nothing manages it after that"
        )


@step("Record what the unresponsive core cluster had", preview=_preview_loss)
def give_up_core(context: StartContext, report: Report) -> None:
    found = known_of_core(context)
    abandon_core(context, found, "abandoned with --abandon")
    report(f"{len(found)} may still exist")


def _preview_core(context: StartContext) -> Iterator[PlannedChange]:
    core = context.topology.core_cluster
    if core in context.teardown.abandon:
        for name, _ in _app_clusters(context):
            lost = f"everything on {name} that is not in a repository"
            yield PlannedChange("delete", f"cluster {name}", f"{core} is abandoned", lost)
    if not _keeps_data(context):
        return
    keeps_data = not context.teardown.delete_data
    if context.core_responds() and keeps_data and planned_objects(context).claims:
        why = "only it manages what is kept; it will be stopped, and its data is kept"
        yield PlannedChange("keep", f"cluster {core}", why)
    else:
        lost = f"all objects on {core} that are not in a repository"
        yield PlannedChange("delete", f"cluster {core}", "nothing that it manages is left", lost)


@step("Delete the core cluster", preview=_preview_core)
def delete_core(context: StartContext, report: Report) -> None:
    """Delete a core that `ucp stop` would keep, unless it still manages something.

    With an abandoned core, also the app clusters on this machine, which it no longer deletes.
    """
    core = context.topology.core_cluster
    if core in context.teardown.abandon:
        for name, provider in _app_clusters(context):
            provider.delete(name)
            forget_access(context, name)
    if not _keeps_data(context):
        return
    if context.teardown.kept:
        report(f"kept with its data: it manages {', '.join(context.teardown.kept)}")
        return
    context.provider.delete(core)
    forget_access(context, core)


def _preview_note(context: StartContext) -> Iterator[PlannedChange]:
    yield PlannedChange(
        "create", context.state.destroyed.name, "`ucp status` shows it until the next start"
    )


@step("Record that the topology is destroyed", preview=_preview_note)
def note_destroyed(context: StartContext, _: Report) -> None:
    """Recorded for `ucp status`, since silent clusters would look like a failure."""
    note_how_far(context, ended=True)


def _keeps_data(context: StartContext) -> bool:
    info = context.provider.info
    return not (info.removed_by_stop or info.adopts)


def _app_clusters(context: StartContext) -> list[tuple[str, ClusterProvider]]:
    """App clusters on this machine whose data the stop before it has kept."""
    return [
        (name, provider)
        for provider in context.providers.values()
        if not (provider.info.removed_by_stop or provider.info.adopts or provider.info.remote)
        for name in provider.names()
        if name != context.topology.core_cluster
    ]
