"""Stops environments and brings them back: sets `state` in ucp.yaml and waits for the core."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation, Output
from k8s_ucp.cli.editing.deletion import (
    await_cluster_deleted,
    clusters_first,
    deletion_of,
    refuse_lost_core,
    refuse_protected,
    refuse_unattended,
)
from k8s_ucp.cli.editing.removal_plan import preview_environment
from k8s_ucp.cli.editing.topology_edit import (
    Edit,
    continues,
    edit_topology,
    in_parts,
    plan_edit,
    shown_step,
)
from k8s_ucp.cli.topology_selection import declared_file, declared_topology
from k8s_ucp.clusters.user_contexts import forgetting_deleted
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UsageError, unknown_name
from k8s_ucp.inspect.cluster_deletion import ClusterDeletion
from k8s_ucp.topology.edit import with_state

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Topology

WAIT_SECONDS = 1200


def stop_environments(
    call: Invocation, names: Sequence[str], *, yes: bool, wait: int, plan: bool, output: Output
) -> None:
    """Commit that environments are stopped, and wait until their clusters are deleted.

    Raises UcpError, UsageError, DeadlineExceeded.
    """
    topology = declared_topology(call)
    chosen = chosen_environments(topology, names)
    again, state = f"ucp stop {env_flags(chosen)}", call.workspace.state(topology.name)
    refuse_lost_core(call, topology, again)
    stopping = [each for each in chosen if each.state == "running"]
    refuse_protected(stopping, declared_file(call))
    planned = preview_stop(call, topology, stopping)
    if plan:
        after = {"await-cluster-gone": planned}
        why = f"state: stopped is set for {', '.join(each.name for each in chosen)}"
        plan_edit(call, editor_of(stopping, "stopped"), output, after=after, why=why)
        return
    kubeconfigs = [state.kubeconfig(topology.app_cluster(each.name)) for each in chosen]
    with (
        in_parts(call, topology, about(chosen), again) as parts,
        forgetting_deleted(kubeconfigs),
    ):
        deletions = deletions_of(call, topology, chosen)
        if stopping and not wait:
            refuse_unattended(deletions.values(), again)
        for each in chosen:
            state.return_note(each.name).unlink(missing_ok=True)
        if stopping:
            question = f"Stop {', '.join(each.name for each in stopping)}?"
            confirm_loss(call, planned, question, yes=yes)
        if stopping or continues(parts, again):
            # An interrupted run may have written ucp.yaml without pushing it. Without a wait,
            # nobody would have networks and roles deleted.
            with clusters_first(deletions.values() if wait else ()):
                commit_state(call, chosen, "stopped", parts)
        clusters = "its cluster is" if len(chosen) == 1 else "their clusters are"
        if len(deletions) < len(chosen):
            how = f"; the core cluster is not running: {clusters} deleted at the next start"
        elif not wait:
            how = f"; {clusters} being deleted: `{again}` waits until that is done"
        else:
            await_clusters_deleted(call, deletions, again, parts, seconds=wait)
            how = ""
    back = "it back" if len(chosen) == 1 else "them back"
    call.console.say(
        f"{in_words(chosen)} stopped{how}\nbring {back} with `ucp recreate {env_flags(chosen)}`"
    )


def all_environments(call: Invocation) -> list[str]:
    """Names of all environments in ucp.yaml. Raises UsageError if there are none."""
    found = [each.name for each in declared_topology(call).spec.environments]
    if not found:
        raise UsageError("ucp.yaml has no environments to stop", next="ucp stop")
    return found


def chosen_environments(topology: Topology, names: Iterable[str]) -> list[Environment]:
    """The named environments, without duplicates, in the topology's order. Raises UsageError."""
    wanted = set(names)
    known = [each.name for each in topology.spec.environments]
    if unknown := sorted(wanted - set(known)):
        raise unknown_name("environment", unknown[0], known, next="ucp env list")
    return [each for each in topology.spec.environments if each.name in wanted]


def preview_stop(
    call: Invocation, topology: Topology, environments: Iterable[Environment]
) -> list[PlannedChange]:
    """What is deleted together with their clusters."""
    return [line for each in environments for line in preview_environment(call, topology, each)]


def confirm_loss(
    call: Invocation, planned: Iterable[PlannedChange], question: str, *, yes: bool
) -> None:
    """Print what is lost for good and what is kept; ask on a terminal.

    If something is lost, a confirmation is required. Raises UsageError.
    """
    planned = list(planned)
    for line in _losses(planned):
        call.console.say(line)
    if yes:
        return
    from k8s_ucp.cli import questions

    questions.require_consent(
        question,
        "nothing was changed",
        next="add --plan to see what is lost for good; then --yes",
        needed=any(each.lost for each in planned),
    )


def _losses(planned: Iterable[PlannedChange]) -> Iterator[str]:
    for each in planned:
        if each.lost:
            yield f"lost for good: {each.lost}"
        elif each.action == "keep":
            yield f"kept: {each.object}"


def editor_of(environments: Iterable[Environment], state: str) -> Edit:
    """The edit of ucp.yaml that sets the state of environments."""
    names = [each.name for each in environments]
    return lambda text, path: with_state(text, names, state, path)


def commit_state(
    call: Invocation, environments: Sequence[Environment], state: str, parts: Journal
) -> Topology:
    """Write the state to ucp.yaml and the repositories. Raises UcpError, UsageError."""
    verb = "Stop" if state == "stopped" else "Bring back"
    return edit_topology(
        call,
        editor_of(environments, state),
        subject=f"{verb} the {in_words(environments)}",
        part_of=parts,
    )


def deletions_of(
    call: Invocation, topology: Topology, environments: Iterable[Environment]
) -> dict[str, ClusterDeletion]:
    """Deletions of their clusters, by environment; empty if the core cluster isn't running."""
    found = ((each.name, deletion_of(call, topology, each.name)) for each in environments)
    return {name: deletion for name, deletion in found if deletion}


def await_clusters_deleted(
    call: Invocation,
    deletions: Mapping[str, ClusterDeletion],
    again: str,
    parts: Journal,
    *,
    seconds: float,
) -> None:
    """Wait until all clusters are deleted, in parallel. Raises DeadlineExceeded."""
    if not deletions:
        return
    until = time.monotonic() + seconds
    title = f"Wait until the clusters of {', '.join(deletions)} are gone"
    with shown_step(call, parts, title, "await-cluster-gone") as report:
        for each in deletions.values():
            await_cluster_deleted(each, again, report, seconds=max(1.0, until - time.monotonic()))


def about(environments: Iterable[Environment]) -> str:
    """What the command changes, for the journal."""
    return f"environment {' '.join(each.name for each in environments)}"


def in_words(environments: Sequence[Environment]) -> str:
    """The environments by name, for a sentence."""
    plural = "s" if len(environments) > 1 else ""
    return f"environment{plural} {', '.join(each.name for each in environments)}"


def env_flags(environments: Iterable[Environment]) -> str:
    return " ".join(f"--env {each.name}" for each in environments)
