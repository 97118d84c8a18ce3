"""Checks before a core in pods is deleted that no cloud resource depends on it alone.

The stop deletes its cluster, or our objects on it, and with them the only record of Crossplane's
cloud resources. A core on GKE keeps its data when it is stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from k8s_ucp.components import crossplane
from k8s_ucp.components.ownership.generated_kinds import kind_of_crd
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.kube import CRD, Kind, KubeError, Object
from k8s_ucp.managed.ownership import is_declared_by_us
from k8s_ucp.preflight.fence import lost_fence
from k8s_ucp.preflight.unresponsive_core import advice_of_silence, is_given_up
from k8s_ucp.providers import PROVIDERS


def check_orphans(context: StartContext) -> None:
    """Check that none of our managed resources is left. Raises UcpError.

    If a kind core does not respond, the stop itself checks again after starting it.
    """
    core = context.topology.core_cluster
    info = PROVIDERS[context.topology.spec.core.provider]
    keeps = not (info.removed_by_stop or info.adopts)
    if lost_fence(context):
        return  # The core that holds the fence manages them now.
    if not context.in_pods or keeps or not context.state.kubeconfig(core).exists():
        return
    try:
        refuse_orphans(context)
    except KubeError as error:
        if context.core_is_adopted():
            if is_given_up(context):
                return
            raise UcpError(
                "failed to list the cloud resources that Crossplane manages on "
                f"{core}: {error.message}",
                next=advice_of_silence(context),
            ) from error


def refuse_orphans(context: StartContext) -> None:
    """Check a core that responds. Raises UcpError; KubeError if its resources can't be listed."""
    kube = context.kube
    others_too = crossplane.NAME in context.topology.spec.core.adopt

    def named(kind: Kind) -> list[str]:
        return [
            f"{kind.kind} {each['metadata']['name']}"
            for each in kube.list_all(kind)
            if not others_too or is_declared_by_us(each)
        ]

    with ThreadPoolExecutor(8, "managed") as pool:
        kinds = managed_kinds(kube.list_all(CRD))
        found = [name for names in pool.map(named, kinds) for name in names]
    if found:
        raise UcpError(
            f"Crossplane on {context.topology.core_cluster} still manages "
            f"{some_of(found)}, which nothing would delete after the "
            "core is gone",
            next=(
                "remove these environments and databases from ucp.yaml (ucp env remove "
                "NAME), wait until `ucp status` no longer lists them, then: ucp stop"
            ),
        )
    context.teardown.no_orphans = True


def managed_kinds(crds: Iterable[Object]) -> list[Kind]:
    """Kinds of managed resources, which Crossplane's providers mark with a category."""
    managed = (
        each for each in crds if "managed" in (each["spec"]["names"].get("categories") or [])
    )
    return [kind for each in managed if (kind := kind_of_crd(each))]
