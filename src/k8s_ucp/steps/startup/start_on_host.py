"""Starts the components as processes on this machine."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from k8s_ucp.aws.account import account_file, write_account
from k8s_ucp.clusters.ports import record, refuse_taken
from k8s_ucp.components import (
    argo_rollouts,
    argocd,
    backup_keeper,
    cloud,
    composition_functions,
    crossplane,
    reconciler,
)
from k8s_ucp.components.argo_rollouts import ArgoRollouts
from k8s_ucp.components.component import Check, Health
from k8s_ucp.components.composition_functions import UserCode
from k8s_ucp.components.host import redis
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.manifests import Manifest, apply_all, digest, read, wait_served
from k8s_ucp.components.watcher import Watcher
from k8s_ucp.compositions import patch_and_transform, user_code
from k8s_ucp.context import StartContext, await_ready, persistent
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import SECRET, Kube
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.steps.startup.apply_manifests import (
    apply_repository_secrets,
    apply_root,
    are_served,
    is_applied,
    note_applied,
    noted,
)
from k8s_ucp.steps.startup.planned_components import (
    planned_programs,
    planned_root,
    preview_programs,
)
from k8s_ucp.topology.placement import with_rollouts

FREE_SECONDS = 5.0
"""Until processes that have just ended release their ports."""
HUNG_SECONDS = 15.0
"""A program that ran before and gives no response for so long is restarted."""


@step(
    "Start the supervisor and redis", preview=preview_programs("supervisor and redis", redis.NAME)
)
def start_supervisor(context: StartContext, _: Report) -> None:
    """Starts what needs no cluster, too: redis and Argo CD's repo-server."""
    _start_supervisor(context)
    context.placement.start([*context.redis.programs(), *context.argocd.early_programs()])


def _start_supervisor(context: StartContext) -> None:
    context.settle_runtime()
    context.placement.ensure_running()
    _refuse_taken_ports(context)
    record(context.state.components, context.host.ports)


def _refuse_taken_ports(context: StartContext) -> None:
    """Check that no other program uses our ports: ours would fail, and send it passwords.

    Raises UcpError.
    """
    until = time.monotonic() + FREE_SECONDS
    while True:
        unused = context.placement.unused(context.host.ports)
        try:
            refuse_taken(unused, f"topology {context.topology.name}")
        except UcpError:
            if time.monotonic() >= until:
                raise
        else:
            return
        context.cancel.pause(0.2)


def _preview_argocd(context: StartContext) -> Iterator[PlannedChange]:
    yield planned_programs(context, "component argocd", "argocd-*")
    yield planned_root(context)


@step("Start Argo CD", preview=_preview_argocd)
@persistent
def start_argocd(context: StartContext, report: Report) -> None:
    """Start its processes, and apply the Application that manages all others."""
    apply_repository_secrets(context)
    now = time.time()
    programs = [*context.redis.programs(), *context.argocd.programs()]
    lost = restore_signing_key(context.kube)
    new = context.placement.start(programs)
    if lost and argocd.SERVER not in new:
        context.placement.restart(argocd.SERVER)  # It writes a new password when it starts.
    if argocd.CONTROLLER in new:
        context.argocd_since = now
    apply_root(context, report)
    report("waiting until it is ready")
    check = context.component(argocd.NAME).ready
    await_ready(context, argocd.NAME, restarting(context.placement, check, programs, new))


@step("Start Crossplane", preview=preview_programs("component crossplane", crossplane.NAME))
@persistent
def start_crossplane(context: StartContext, report: Report) -> None:
    """Initialize Crossplane after its CRDs were applied, and start it."""
    path = f"platform/{crossplane.NAME}/engine"
    kinds = read(context.published.core.read(path))
    known = initialized_by(context.toolbox.version(crossplane.NAME), kinds)
    if not is_applied(context.kube, "start-crossplane", known, kinds):
        report("certificates and default objects")
        context.crossplane.initialize(
            timeout=min(crossplane.INIT_SECONDS, context.upgrade.patience),
            programs=context.cancel.programs,
        )
        note_applied(context.kube, "start-crossplane", known)
    context.crossplane.fetch_certificates(context.kube)
    if context.simulates_cloud:
        report("composition function")
        _start_functions(context)
    report("controllers")
    _start_programs(
        context, crossplane.NAME, context.crossplane.programs(), context.crossplane.ready
    )


@step("Start the simulated cloud", preview=preview_programs("simulated cloud", cloud.NAME))
def start_cloud(context: StartContext, report: Report) -> None:
    """Start AWS on this machine, and write its address to a file for the reconciler."""
    report("waiting until it is ready")
    _start_programs(context, cloud.NAME, context.cloud.programs(), context.cloud.ready)
    write_account(account_file(context.state), context.cloud.account())


def initialized_by(version: str | None, kinds: Iterable[Manifest]) -> str:
    """The record of an initialization: another version may need other objects for the same CRDs."""
    return f"{version} {digest(kinds)}"


def _start_functions(context: StartContext) -> None:
    """Crossplane asks for the functions' capabilities when it first reads a Composition."""
    functions = replace(context.functions, of_users=_user_code(context))
    functions.ensure_certificate(context.kube)
    programs = functions.programs()
    new = context.placement.start(programs)
    functions.register(context.kube)
    check = restarting(context.placement, functions.ready, programs, new)
    await_ready(context, composition_functions.NAME, check)


def _user_code(context: StartContext) -> UserCode:
    """From the local bare repository, where a push counts at once, or from the clone."""
    core, branch = context.published.core, context.topology.spec.git.branch
    names = user_code.names(
        core.clone.listing(core.commit, user_code.FOLDER),
        reserved=patch_and_transform.NAME,
    )
    if context.topology.spec.git.provider == "local":
        return UserCode(tuple(names), context.gitops.core_remote, f"refs/heads/{branch}")
    return UserCode(tuple(names), core.clone.folder, f"refs/remotes/origin/{branch}")


@step("Start the reconciler", preview=preview_programs("component reconciler", reconciler.NAME))
def start_reconciler(context: StartContext, _: Report) -> None:
    """Starts the reconciler's process, which creates and registers app clusters."""
    _start_reconciler(context)


@step(
    "Start the local-cluster controller",
    preview=preview_programs("local-cluster controller", reconciler.NAME),
)
def start_local_clusters(context: StartContext, _: Report) -> None:
    """Starts what this machine does for a core in pods."""
    _start_supervisor(context)
    _start_reconciler(context)


def _start_reconciler(context: StartContext) -> None:
    """Starts the watcher of processes, too."""
    context.placement.remove([backup_keeper.NAME])
    programs = [*context.reconciler.programs(), *Watcher(context.placement).programs()]
    new = context.placement.start(programs)
    checked = [each for each in programs if each.name == reconciler.NAME]
    check = restarting(context.placement, context.reconciler.ready, checked, new)
    await_ready(context, reconciler.NAME, check)


def _preview_rollouts(context: StartContext) -> Iterator[PlannedChange]:
    for each in with_rollouts(context.topology):
        yield planned_programs(context, f"Argo Rollouts of {each}", f"rollouts-{each}")


@step("Start Argo Rollouts", preview=_preview_rollouts)
@persistent
def start_rollouts(context: StartContext, report: Report) -> None:
    """For embedded environments: apply its CRDs to the app cluster, run its controller here."""
    for environment in with_rollouts(context.topology):
        report(environment)
        kubeconfig = context.state.kubeconfig(context.topology.app_cluster(environment))
        kinds = read(argo_rollouts.engine_manifests(context.toolbox.module(argo_rollouts.NAME)))
        record, current = f"start-rollouts-{environment}", digest(kinds)
        kube = Kube.from_file(kubeconfig)
        try:
            # The record is on the core, so an environment that was recreated has one, too.
            if noted(context.kube, record) != current or not are_served(kube, kinds):
                apply_all(kube, kinds)
                wait_served(kube, kinds)
                note_applied(context.kube, record, current)
        finally:
            kube.close()
        rollouts = ArgoRollouts(context.host, environment, kubeconfig)
        _start_programs(context, rollouts.name, rollouts.programs(), rollouts.ready)


def restore_signing_key(kube: Kube) -> bool:
    """Create Argo CD's Secret if someone deleted it: its server doesn't start without; whether so.

    The Secret is not in git, and the settings are only applied if they change.
    """
    lost = kube.find(SECRET, "argocd-secret", ARGOCD_NAMESPACE) is None
    if lost:
        argocd.ensure_signing_key(kube)
    return lost


def _start_programs(
    context: StartContext, name: str, programs: Sequence[Program], check: Check
) -> None:
    """Start a component's programs, and wait until it is ready."""
    new = context.placement.start(programs)
    await_ready(context, name, restarting(context.placement, check, programs, new))


def restarting(
    placement: HostPlacement, check: Check, programs: Iterable[Program], new: Collection[str]
) -> Check:
    """A check that restarts programs that hang, once: supervisord only notices those that exit.

    new: names of programs that were just started, which may need longer to respond.
    """
    running = [each.name for each in programs if each.name not in new]
    since: float | None = None

    def look() -> Health:
        nonlocal since
        health = check()
        if not health.silent:
            since = None
            return health
        since = since or time.monotonic()
        if time.monotonic() - since >= HUNG_SECONDS:
            while running:
                placement.restart(running.pop(0))
        return health

    return look
