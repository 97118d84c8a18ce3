"""Which of the pinned programs a topology runs on. Pure."""

from __future__ import annotations

from k8s_ucp.tools.catalogue import EMBEDDED, KIND, PODS, ROLLOUTS
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import in_pods


def needed_tools(topology: Topology) -> tuple[str, ...]:
    """Names of the pinned programs that a topology runs on."""
    spec = topology.spec
    used = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    rollouts = spec.addons.argo_rollouts and "embedded" in used
    return (
        *(PODS if in_pods(topology) else EMBEDDED),
        *(KIND if "kind" in used else ()),
        *(ROLLOUTS if rollouts else ()),
    )
