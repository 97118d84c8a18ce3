"""Starts a stopped kind core cluster before `ucp stop` deletes it, and checks what would be lost.

After a reboot its containers exist, but are stopped. Only the core cluster itself knows
Crossplane's cloud resources and what the backup lacks; if it doesn't respond, a person has to name
it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters.admin_kubeconfigs import write_access
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.kube import KubeError
from k8s_ucp.preflight.orphans import refuse_orphans
from k8s_ucp.providers import PROVIDERS, cloud_providers
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import key_for
from k8s_ucp.reconciler.backup.writer import failure
from k8s_ucp.timestamps import stamp
from k8s_ucp.topology.placement import simulated_databases

SECONDS = 120.0
"""Time for its node to start and its API server to respond."""
_BASE = re.compile(rf"/base/({'|'.join(cloud_providers())})\b")
"""In an environment's folder: the cloud that its cluster is in."""


def check_core_to_delete(context: StartContext, report: Report) -> bool:
    """Check that a core which the stop deletes manages no cloud resources.

    Returns False if it doesn't respond, and may be deleted anyway. Raises UcpError if it does
    manage some, or doesn't respond and isn't abandoned.
    """
    name = context.topology.core_cluster
    provider = maker_of_removed_core(context)
    if provider is None:
        info = PROVIDERS[context.topology.spec.core.provider]
        if info.removed_by_stop and context.state.kubeconfig(name).exists():
            # Someone else deleted it; this stop deletes nothing, and only reports what is unknown.
            context.teardown.unasked = at_stake(context)
        return True
    try:
        if not context.core_responds():
            report(f"starting {name} to check it for data that exists nowhere else")
            _wake(context, provider, name)
        if not context.teardown.no_orphans:
            _refuse_orphans(context)
    except _Silent as error:
        accept_loss(context, str(error), report)
        return False
    return True


def accept_loss(context: StartContext, why: str, report: Report) -> None:
    """Let a silent core be deleted, if a person named it or nothing depends on it.

    Raises UcpError otherwise.
    """
    name, lost = context.topology.core_cluster, at_stake(context)
    if lost and name not in context.teardown.abandon:
        raise UcpError(
            f"{name} is not responding ({why}), and `ucp stop` would delete data that "
            f"exists nowhere else: {', '.join(lost)}. Cloud resources created by "
            "Crossplane would be kept and billed, with nothing managing them.",
            next=f"repair it with ucp start; or accept the loss: ucp stop --abandon {name}",
        )
    context.teardown.unasked = lost
    abandon_core(context, lost, why)
    report(f"{name} is not responding: nothing was backed up")


def abandon_core(context: StartContext, lost: Iterable[str], why: str) -> None:
    """Record what may be lost with a core that could not be asked."""
    since = stamp(time.time())
    core = context.topology.core_cluster
    reason = f"{core} is not responding ({why})"
    AbandonedRecord(context.state.abandoned).add(
        AbandonedResource(each, reason, since) for each in lost
    )


def at_stake(context: StartContext) -> list[str]:
    """What only the core knows, according to the topology, the repository and local notes."""
    spec = context.topology.spec
    without_data = {
        f"database {name} of {environment}"
        for name, environments in simulated_databases(context.topology).items()
        for environment in environments
    }
    found = {
        *(
            f"environment {each.name} ({each.cluster.provider})"
            for each in spec.environments
            if each.cluster.provider in cloud_providers()
        ),
        *(
            f"database {each.name} of {environment}"
            for each in spec.databases
            for environment in each.environments or (env.name for env in spec.environments)
        ),
    }
    for file in context.gitops.core.glob("clusters/overlays/*/kustomization.yaml"):
        text = file.read_text("utf-8", errors="replace")
        found.update(f"environment {file.parent.name} ({each})" for each in _BASE.findall(text))
    for file in context.gitops.core.glob("databases/overlays/*/*.yaml"):
        if file.name != "kustomization.yaml":
            found.add(f"database {file.stem} of {file.parent.name}")
    if reason := failure(context.state.backup):
        found.add(f"data that is not backed up ({reason.splitlines()[0]})")
    try:
        if kept := _names_in_clouds(context):
            found.add(f"{kept} cloud resources whose names are in the backup")
    except UcpError as error:
        found.add(f"the content of the backup ({error.message})")
    return sorted(found - without_data)


class _Silent(Exception):
    """The core doesn't respond, for this reason."""


def maker_of_removed_core(context: StartContext) -> ClusterProvider | None:
    """The provider of a core that the stop deletes with its data; None if there is none."""
    providers = [each for each in context.providers.values() if each.info.removed_by_stop]
    core = context.topology.core_cluster
    return next((each for each in providers if each.state(core).exists), None)


def _wake(context: StartContext, provider: ClusterProvider, name: str) -> None:
    try:
        provider.start(name, timeout=SECONDS)
        write_access(provider, name, context.state.kubeconfig(name))
    except UcpError as error:
        raise _Silent(error.message) from error
    # A connection that was opened before may be outdated.
    vars(context).pop("kube", None)


def _refuse_orphans(context: StartContext) -> None:
    try:
        refuse_orphans(context)
    except KubeError as error:
        raise _Silent(error.message) from error


def _names_in_clouds(context: StartContext) -> int:
    """Number of managed resources in the backup, as last fetched."""
    if not (context.gitops.core / ".git").exists():
        return 0
    file = BackupFile(Repository(context.gitops.core), context.topology.spec.git.branch)
    if file.seen is None or file.sealed(file.seen) is None:
        return 0
    key = key_for(context.workspace.backup_key, lambda: True)
    return len(file.read(file.seen, key).external_names)
