"""`ucp doctor`: prints problems, their causes, and the next command for each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from k8s_ucp.cli.command import (
    Output,
    OutputOption,
    declare,
    examples,
    invocation,
    notation,
    option,
    with_given_options,
)
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.inspection.doctor_fixes import fix as fix_findings
from k8s_ucp.cli.inspection.status import collect
from k8s_ucp.cli.topology_selection import chosen_view, file_of, no_file_of, refuse_lost_file
from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.context import TopologyView
from k8s_ucp.credentials import exposed_files
from k8s_ucp.engine import journal
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.record import FenceRecord
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.inspect.doctor import checks, examination
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord
from k8s_ucp.inspect.teardown.destruction import read_destruction
from k8s_ucp.preflight.adoption import adopted_settings
from k8s_ucp.preflight.credentials import check_backup, check_tracked_credentials
from k8s_ucp.preflight.fence import holder_of, read_fence
from k8s_ucp.preflight.lost_repositories import check_git_locks, check_repositories
from k8s_ucp.preflight.machine import check_folders, check_limits
from k8s_ucp.reconciler.aws.control_planes import is_plane_name
from k8s_ucp.reconciler.backup.writer import failure
from k8s_ucp.topology import load

app = declare()

REMOTE_SECONDS = 10.0
_SIGNS = {"error": "ERROR  ", "warning": "warning", "info": "info   "}


@app.command(
    "doctor",
    epilog=examples(
        "ucp doctor --fix",
        "ucp doctor --bundle bug.tar.gz",
    ),
)
def examine(
    ctx: typer.Context,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a support bundle (tar.gz, without secrets) to a new file.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help=(
                "Restart stopped components, write missing kubeconfigs and make credential files "
                "private. Nothing is deleted."
            ),
        ),
    ] = False,
    yes: Annotated[bool, option("--yes", None, "With --fix: do not ask.", "-y")] = False,
    output: OutputOption = Output.table,
) -> None:
    """Find problems and print the next command for each.

    Exits with 1 if there are errors, with 0 if there are none or only warnings.
    """
    call = invocation(ctx)
    context = chosen_view(call)
    # Only ports and paths are read here; no program is started.
    result = examined(context)
    found = [
        replace(each, next=with_given_options(each.next, call.given))
        for each in checks.findings(result)
    ]
    if bundle:
        from k8s_ucp.cli.inspection.doctor_bundle import write_bundle

        paths = write_bundle(context, result, found, bundle)
        call.console.say(f"wrote {bundle} ({len(paths)} files); review it before you share it")
    for each in journal.unfinished(context.state)[0]:
        if each.state == "running":
            call.console.say(f"note: {each}; it may fix the problems below")
    if output is Output.table:
        call.console.data(_page(found))
    else:
        call.console.data(notation({"findings": [each.data() for each in found]}, output))
    fixed = fix_findings(call, context, found, yes=yes) if fix else set()
    if any(each.severity == "error" and each.id not in fixed for each in found):
        raise typer.Exit(1)


def examined(context: TopologyView) -> examination.Examined:
    """Collect everything that the checks need."""
    snapshot = collect(context)
    unfit, lacking = adopted_settings(context) if snapshot.core_ready else ([], [])
    return examination.collect(
        context.topology,
        snapshot,
        lambda: context.kube,
        time.time(),
        exposed=_exposed(context),
        not_backed_up=failure(context.state.backup),
        unfit=unfit,
        lacking=lacking,
        machine=dict(_lacks(context)),
        startable=_startable(context),
        without_kubeconfig=list(_without_kubeconfig(context)),
        abandoned=AbandonedRecord(context.state.abandoned).resources(),
        abandoned_file=str(context.state.abandoned),
        app_clusters={name: context.state.kubeconfig(name) for name in snapshot.answering},
        destruction=None if snapshot.core_ready else read_destruction(context.state.destroyed),
        admin=str(context.state.kubeconfig(context.topology.core_cluster)),
        fence=_fence_of_others(context),
        interrupted=[
            (str(each), each.next)
            for each in journal.unfinished(context.state)[0]
            if each.state != "running"
        ],
    )


def _startable(context: TopologyView) -> set[str]:
    """Components whose programs this machine has, unless they were stopped on purpose."""
    placement = context.placement
    if context.in_pods or placement.is_stopping() or not context.state.supervisor_config.exists():
        return set()
    return {argocd.NAME, crossplane.NAME, reconciler.NAME, cloud.NAME}


def _exposed(context: TopologyView) -> list[str]:
    # If the folder can't be read, the finding credential/tracked says so.
    with contextlib.suppress(UcpError):
        return [str(each) for each in exposed_files(context.workspace.credentials)]
    return []


def _without_kubeconfig(context: TopologyView) -> Iterator[str]:
    for provider in context.providers.values():
        if provider.info.adopts or provider.info.remote:
            continue
        for name in provider.names():
            if is_plane_name(name) or context.state.kubeconfig(name).exists():
                continue
            if provider.state(name).ready:
                yield name


def _fence_of_others(context: TopologyView) -> FenceRecord | None:
    """The fence's record, if another workspace's core holds it."""
    with contextlib.suppress(UcpError):
        credential = credential_of(context.topology, context.workspace)
        found = read_fence(context, credential, seconds=REMOTE_SECONDS)
        if found and found.holder and not found.is_held_by(holder_of(context).id):
            return found
    return None


def _lacks(context: TopologyView) -> Iterator[tuple[str, UcpError]]:
    """What the workspace, this machine or a remote lacks: files, disk space, a response."""
    checks: dict[str, Callable[[], object]] = {
        "backup/content": partial(check_backup, context),
        "credential/tracked": partial(check_tracked_credentials, context),
        "machine/folders": partial(check_folders, context),
        "machine/limits": partial(check_limits, context),
        "remote/lost": partial(check_repositories, context),
        "repositories/locked": partial(check_git_locks, context),
        "topology/file": partial(_check_file, context),
        "remote/core": partial(_check_remote, context, "core"),
        "remote/apps": partial(_check_remote, context, "apps"),
    }
    for name, check in checks.items():
        try:
            check()
        except UcpError as error:
            yield name, error


def _check_file(context: TopologyView) -> None:
    """Raises UcpError if the topology file, which the next start needs, is gone or invalid."""
    workspace = context.workspace
    file = file_of(workspace, context.topology.name) or workspace.topology_file
    if not file.exists():
        refuse_lost_file(workspace, context.topology.name, file)
        return
    if load(file).name != context.topology.name:
        raise no_file_of(workspace, context.topology.name)


def _check_remote(context: TopologyView, name: str) -> None:
    """Raises UcpError if a repository's remote doesn't respond or rejects the credential.

    name: core or apps. The clone of a moved workspace has another URL until the next start.
    """
    clone: Path = getattr(context.gitops, name)
    if clone.exists():
        credential = credential_of(context.topology, context.workspace)
        url: str = getattr(addresses(context.topology, context.gitops), name)
        Repository(clone, credential=credential).remote_refs(url, timeout=REMOTE_SECONDS)


def _page(found: list[Finding]) -> str:
    if not found:
        return "no problems found"
    return "\n".join(
        f"{_SIGNS[each.severity]}  {each.message}\n         next: {each.next}"
        + (f"\n         ucp doctor --fix: {each.fix}" if each.fix else "")
        for each in found
    )
