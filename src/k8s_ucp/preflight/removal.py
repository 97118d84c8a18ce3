"""Checks that removing ucp from an existing core deletes no objects of others."""

from __future__ import annotations

from k8s_ucp.clusters.existing.adoption import check_owner
from k8s_ucp.clusters.existing.provider import make
from k8s_ucp.clusters.local import core_request
from k8s_ucp.components import argocd
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.components.adoption.adopted import find_component
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.components.ownership.ledger import Ledger
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.preflight.adoption import settings_of
from k8s_ucp.preflight.unresponsive_core import advice_of_silence, is_given_up
from k8s_ucp.topology.placement import core_is_existing


def check_existing_core(context: StartContext) -> None:
    """Check that nothing that others created is deleted together with our objects.

    Raises UcpError, also if the core does not respond and is not abandoned.
    """
    if is_given_up(context):
        return
    inventory = inventory_of(context)
    if inventory is None:
        _check_unknown(context)
        return
    try:
        check_tracking(inventory)
        foreign = inventory.foreign()
    except KubeError as error:
        raise UcpError(
            f"failed to list the objects on {context.topology.core_cluster}: {error.message}",
            next=advice_of_silence(context),
        ) from error
    if foreign:
        raise UcpError(
            f"stopping would delete objects on {context.topology.core_cluster} that "
            "ucp did not create, together with its components: "
            f"{some_of(foreign)}",
            next="move or delete these objects, then: ucp stop",
        )


def check_data(context: StartContext) -> None:
    """Check that --delete-data loses nothing that exists outside. Raises UcpError.

    A core without clouds is not contacted.
    """
    if not context.teardown.delete_data or context.teardown.destroys:
        return
    core, info = context.topology.core_cluster, context.provider.info
    if info.adopts or info.remote:
        raise UcpError(
            f"--delete-data: {core} ({info.name}) does not keep its data on this machine",
            next="ucp stop; or, to delete all that the topology has: ucp destroy",
        )
    if context.simulates_cloud:
        raise UcpError(
            f"{core} manages resources of a cloud, which nothing would manage without its data",
            next="ucp destroy --delete-data",
        )


def check_tracking(inventory: Inventory) -> None:
    """Check that an Argo CD that stays tracks our objects distinguishably. Raises UcpError."""
    if not inventory.argocd_is_foreign:
        return
    version = find_component(inventory.kube, argocd.NAME).version
    settings = settings_of(inventory.kube, adopted_argocd.SETTINGS)
    for each in adopted_argocd.untracked(settings, version):
        raise UcpError(
            f"ucp's objects can't be distinguished in the existing Argo CD: {each.message}",
            next=f"{each.command('kubectl')}; then: ucp stop",
        )


def _check_unknown(context: StartContext) -> None:
    """Check a core for which we have no note: it may have been lost while objects remain."""
    topology = context.topology
    if not core_is_existing(topology):
        return
    request = core_request(context.workspace, topology)
    try:
        with make(context.workspace, topology).opened(request) as kube:
            marked = check_owner(kube, request.name, context.workspace.machine_id(topology.name))
    except UcpError:
        # Nothing of ours can be found.
        return
    if marked:
        raise UcpError(
            f"{request.name} is used by this topology, but the record of the objects "
            "that ucp created there is missing",
            next="ucp start (rewrites the record), then: ucp stop",
        )


def inventory_of(context: StartContext) -> Inventory | None:
    """None if the core is not an existing cluster, or contains nothing of ours.

    A copy of a workspace has the note that the original wrote when it adopted the cluster: the mark
    on the cluster decides. Raises UcpError if it can't be read.
    """
    name, adopted = context.topology.core_cluster, make(context.workspace, context.topology)
    if name not in adopted.names():
        return None
    # From the user's current kubeconfig: the copy that start wrote may be outdated.
    kube = Kube(adopted.kubeconfig(name))
    if _is_anothers(context, kube):
        return None
    entries = Ledger(context.state.ledger).entries()
    return Inventory(kube, entries, adopted.since(name), context.topology.name)


def _is_anothers(context: StartContext, kube: Kube) -> bool:
    """Whether the core's mark is that of another workspace or topology. Raises UcpError."""
    name, topology = context.topology.core_cluster, context.topology.name
    try:
        check_owner(kube, name, context.workspace.machine_id(topology))
    except KubeError as error:
        raise UcpError(
            f"failed to find out whose cluster {name} is: {error.message}",
            next=advice_of_silence(context),
        ) from error
    except UcpError:
        return True
    return False
