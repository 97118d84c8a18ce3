"""Which of the pinned programs a topology runs on. Pure."""

from __future__ import annotations

from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.catalogue import EMBEDDED, PODS, ROLLOUTS
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import in_pods


def needed_tools(topology: Topology) -> tuple[str, ...]:
    """Names of the pinned programs that a topology runs on."""
    spec = topology.spec
    names = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    used = [info for name, info in PROVIDERS.items() if name in names]
    rollouts = spec.addons.argo_rollouts and any(each.simulated for each in used)
    return (
        *(PODS if in_pods(topology) else EMBEDDED),
        *(tool for each in used for tool in each.tools),
        *(ROLLOUTS if rollouts else ()),
    )
