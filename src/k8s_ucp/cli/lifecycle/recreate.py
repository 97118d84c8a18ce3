"""`ucp recreate`: recreates environments, or the core cluster, from git and the backup."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from k8s_ucp import names
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    PlanOption,
    PlanOutputOption,
    TakeoverOption,
    YesOption,
    declare,
    examples,
    option,
    plan_invocation,
)
from k8s_ucp.cli.editing.deletion import (
    clusters_first,
    core_silence,
    open_core,
    refuse_lost_core,
    refuse_protected,
)
from k8s_ucp.cli.editing.topology_edit import (
    context_of,
    continues,
    in_parts,
    plan_edit,
    refuse_changed,
)
from k8s_ucp.cli.lifecycle.environment_states import (
    WAIT_SECONDS,
    about,
    await_clusters_deleted,
    chosen_environments,
    commit_state,
    confirm_loss,
    deletions_of,
    editor_of,
    env_flags,
    preview_stop,
)
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.cli.topology_selection import declared_file, declared_topology, environment_names
from k8s_ucp.engine.journal import Journal, unfinished_at
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.kube import LOCAL_CLUSTER, Object, labels_of
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import read_topology
from k8s_ucp.workspace import write_private_file

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext
    from k8s_ucp.topology import Environment, Topology

app = declare()


class Remaining(Enum):
    """What is left to do for an environment."""

    tear_down = "it runs"
    bring_back = "it is stopped, or being stopped"
    wait = "an earlier run already committed its recreation"


def next_of(state: str, *, coming_back: bool) -> Remaining:
    """What to do next. coming_back: an interrupted run has torn it down and left a note."""
    if state == "stopped":
        return Remaining.bring_back
    return Remaining.wait if coming_back else Remaining.tear_down


@app.command(
    epilog=examples(
        "ucp recreate --env stage",
        "ucp recreate --plan",
    )
)
def recreate(
    ctx: typer.Context,
    env: Annotated[
        list[str] | None,
        option(
            "--env",
            "NAME",
            "Recreate the cluster of this environment; repeatable. Default: the core cluster.",
            autocompletion=environment_names,
        ),
    ] = None,
    wait: Annotated[
        int,
        option(
            "--wait",
            "SECONDS",
            "With --env: how long to wait for the cluster to be deleted.",
            min=1,
        ),
    ] = WAIT_SECONDS,
    takeover: TakeoverOption = False,
    yes: YesOption = False,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Recreate environments, or a core cluster whose state was lost.

    With --env, a stopped environment is brought back; a running one is torn down first. The app
    repository says which versions come back. A run that was interrupted is finished by the next.

    Without --env, the core cluster is created from the repositories, creds/ and the backup, such
    as after .ucp was deleted or on another machine.
    """
    call = plan_invocation(ctx, output, plan=plan)
    if env and takeover:
        raise UsageError("--env and --takeover are mutually exclusive")
    if env:
        _recreate_environments(call, env, yes=yes, wait=wait, plan=plan, output=output)
    else:
        _recreate_core(call, takeover=takeover, yes=yes, plan=plan, output=output)


def _recreate_environments(
    call: Invocation, names: Sequence[str], *, yes: bool, wait: int, plan: bool, output: Output
) -> None:
    topology = declared_topology(call)
    chosen = chosen_environments(topology, names)
    state = call.workspace.state(topology.name)
    noted = {each.name for each in chosen if state.return_note(each.name).exists()}
    # Such a cluster does not come back, however long the command waits.
    coming_back = noted - (_failed(call, topology) if noted else set())
    todo = {each.name: next_of(each.state, coming_back=each.name in coming_back) for each in chosen}
    to_tear_down = [each for each in chosen if todo[each.name] is Remaining.tear_down]
    to_recreate = [each for each in chosen if todo[each.name] is not Remaining.wait]
    refuse_protected(to_tear_down, declared_file(call))
    again = f"ucp recreate {env_flags(chosen)}"
    refuse_lost_core(call, topology, again)
    core = open_core(call, topology)
    if core is None:
        raise _silent(call, topology, again)
    core.close()
    planned = preview_stop(call, topology, to_tear_down)
    if plan:
        why = f"state: running is set for {', '.join(each.name for each in chosen)}"
        before = {"await-cluster-gone": planned}
        plan_edit(call, editor_of(chosen, "running"), output, before=before, why=why)
        return
    with in_parts(call, topology, about(chosen), again) as parts:
        deletions = deletions_of(call, topology, to_recreate)
        if len(deletions) < len(to_recreate):
            # Nothing would be waited for, and a cluster that still runs would count as recreated.
            raise _silent(call, topology, again)
        if to_tear_down:
            question = f"Tear down and recreate {', '.join(each.name for each in to_tear_down)}?"
            confirm_loss(call, planned, question, yes=yes)
        if to_tear_down or (to_recreate and continues(parts, again)):
            # An interrupted run may have written ucp.yaml without pushing it.
            with clusters_first(deletions.values()):
                commit_state(call, to_recreate, "stopped", parts)
        await_clusters_deleted(call, deletions, again, parts, seconds=wait)
        if to_recreate:
            _bring_back(call, topology, to_recreate, parts)
        seconds = _wait_until_back(call, chosen, to_recreate, parts)
        for each in chosen:
            state.return_note(each.name).unlink(missing_ok=True)
    for each in chosen:
        how = (
            "finished an earlier ucp recreate" if todo[each.name] is Remaining.wait else "recreated"
        )
        call.console.say(f"environment {each.name} runs: {how} ({seconds:.1f} s)")


def _wait_until_back(
    call: Invocation,
    chosen: Sequence[Environment],
    recreated: Sequence[Environment],
    parts: Journal,
) -> float:
    """Run the steps that bring these environments back; returns the seconds that they took."""
    from k8s_ucp import plans

    context = _context(call)
    context.only = frozenset(each.name for each in chosen)
    _forget_rollouts(context, recreated)
    plan = plans.bring_back(context.topology)
    return run_plan(
        plan,
        context,
        call.console,
        before=lambda: refuse_changed(context, declared_file(call)),
        part_of=parts,
    )


def _failed(call: Invocation, topology: Topology) -> set[str]:
    """Environments whose clusters can't be created or started, as far as the core responds."""
    kube = open_core(call, topology)
    if kube is None:
        return set()
    with contextlib.closing(kube):
        return failed_environments(kube.list_all(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE))


def failed_environments(local_clusters: Iterable[Object]) -> set[str]:
    """Environments of the LocalClusters whose creation or start fails. Pure."""
    from k8s_ucp.reconciler.local_clusters.rules import CREATE_FAILED
    from k8s_ucp.reconciler.runtime.conditions import first_of

    return {
        labels_of(each).get(names.ENVIRONMENT, "")
        for each in local_clusters
        if (found := first_of(each, (names.READY,), "False")) and found["reason"] == CREATE_FAILED
    }


def _silent(call: Invocation, topology: Topology, again: str) -> UcpError:
    return UcpError(
        f"{core_silence(call, topology)}; nothing was changed",
        next=f"ucp start, then: {again}",
    )


def _bring_back(
    call: Invocation, topology: Topology, environments: Sequence[Environment], parts: Journal
) -> None:
    """Write the note, then commit: after an interruption in between, they are still stopped."""
    for each in environments:
        write_private_file(call.workspace.state(topology.name).return_note(each.name), "")
    commit_state(call, environments, "running", parts)


def _context(call: Invocation) -> StartContext:
    topology = declared_topology(call)
    return context_of(call, topology, read_topology(declared_file(call)))


def _forget_rollouts(context: StartContext, environments: Iterable[Environment]) -> None:
    """Remove their controllers, which have kubeconfigs of deleted clusters."""
    states = context.placement.states()
    old = [name for each in environments if (name := f"rollouts-{each.name}") in states]
    if old:
        context.placement.remove(old)


def _recreate_core(
    call: Invocation, *, takeover: bool, yes: bool, plan: bool, output: Output
) -> None:
    """Run `ucp start`, which creates the core and restores the backup. Raises UcpError."""
    from k8s_ucp import plans
    from k8s_ucp.cli.git_credentials import read_credential_of
    from k8s_ucp.cli.lifecycle.start_summary import summary_table
    from k8s_ucp.cli.topology_selection import remember

    context = _context(call)
    topology = context.topology
    _refuse_without_loss(call, context)
    context.git_read_credential = read_credential_of(topology, call.workspace)
    context.takeover = takeover
    if lost := _lost_without_backup(context):
        call.console.say("\n".join(f"lost for good: {each}" for each in lost))
        if not plan:
            _accept(yes=yes)
    if plan:
        show_plan(call, [plans.start(topology)], context, output)
        return

    def begin() -> None:
        refuse_changed(context, declared_file(call))
        remember(call.workspace, topology.name, context.topology_file.decode())

    seconds = run_plan(plans.start(topology), context, call.console, before=begin)
    call.console.say(summary_table(context, seconds))


def _refuse_without_loss(call: Invocation, context: StartContext) -> None:
    """Raises UcpError if the core exists, or there is nothing to recreate it from."""
    topology = context.topology
    core, gitops = topology.core_cluster, call.workspace.gitops(topology.name)
    last = unfinished_at(context.state.journal, "start")
    if last and "recreate" in shlex.split(last.command):
        return  # That run created the core, and was interrupted.
    if core in context.provider.names():
        raise UcpError(
            f"the core cluster {core} exists; nothing was changed",
            next="ucp start repairs it, unless its data is damaged: then ucp stop --delete-data "
            "and this command again; ucp recreate --env NAME recreates an environment",
        )
    if topology.spec.git.provider == "local" and not gitops.core_remote.exists():
        raise UcpError(
            f"the repository {gitops.core_remote} to recreate {core} from does not exist",
            next=f"restore your copy of {gitops.root}, or run ucp start to start from scratch",
        )


def _lost_without_backup(context: StartContext) -> list[str]:
    """What a new core can't restore; empty if the repository has a backup.

    Raises UcpError if that can't be determined.
    """
    from k8s_ucp.preflight.credentials import sealed_backup

    if sealed_backup(context, fetch=True) is not None:
        return []
    spec = context.topology.spec
    clouds = [
        f"environment {each.name} ({each.cluster.provider})"
        for each in spec.environments
        if PROVIDERS[each.cluster.provider].managed
    ]
    clouds += [f"database {each.name}" for each in spec.databases if each.provider != "local"]
    lost = ["generated passwords (the core repository has no backup/state.age)"]
    if clouds:
        lost.append(
            f"the names of what exists in clouds ({some_of(clouds)}): they stay there, are billed, "
            "and are created a second time unless they are deleted there first"
        )
    return lost


def _accept(*, yes: bool) -> None:
    """Ask to accept the loss. Raises UsageError."""
    from k8s_ucp.cli import questions

    if yes:
        return
    if not questions.can_ask():
        raise UsageError(
            "the core repository has no backup, and nothing confirms that the loss is accepted",
            next="git log -- backup/state.age shows older versions; or: ucp recreate --yes",
        )
    if not questions.confirm("Recreate the core cluster without its backup?", default=False):
        raise UsageError("nothing was created")
