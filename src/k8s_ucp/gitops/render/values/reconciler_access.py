"""What the reconciler may read on the core cluster, depending on the topology. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.names import ARGOCD_NAMESPACE, CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

CORE_NAMESPACES = (CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE, ARGOCD_NAMESPACE)
"""Namespaces that have their own file."""
BUILT_IN = (*CORE_NAMESPACES, "default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True)
class Reads:
    """Namespaces; each is only in one of `sources` and `mirrored`."""

    sources: Sequence[str]
    """Where kubeconfig Secrets and Syncers are honored; always includes that of the clusters."""
    mirrored: Sequence[str]
    """Sources of mirrors, except those above and the namespaces of teams."""
    copied: Sequence[str]
    """All sources of mirrors except those above, including the namespaces of teams."""
    made: Sequence[str]
    """Those of `sources` and `mirrored` that nothing else creates."""
    owners: Sequence[tuple[str, Sequence[str]]]
    """(API group, kinds) of the managed resources that cloud clusters consist of.

    Also of clouds without an environment: when the last one was removed, only its owner proves that
    its cluster is gone.
    """


def mirror_sources(topology: Topology) -> tuple[str, ...]:
    """Namespaces that mirrors copy from: those of ucp.yaml's mirrors, and all teams' namespaces."""
    spec = topology.spec
    mirrored = {each.source.namespace for each in spec.mirrors}
    return tuple(sorted({*mirrored, *(each.namespace for each in spec.teams)}))


def reads(topology: Topology) -> Reads:
    """The namespaces for a topology, sorted, so that the rendered bytes are stable."""
    spec = topology.spec
    sources = sorted({CLUSTERS_NAMESPACE, *spec.reconciler.source_namespaces})
    # For a team's namespace, the team's own files grant access.
    own = {*sources, *(each.namespace for each in spec.teams)}
    mirrored = sorted({each.source.namespace for each in spec.mirrors} - own)
    managed = [each.managed for _, each in sorted(PROVIDERS.items())]
    return Reads(
        sources=sources,
        mirrored=mirrored,
        copied=[each for each in mirror_sources(topology) if each not in sources],
        made=sorted({*sources, *mirrored} - set(BUILT_IN)),
        owners=[(each.group, tuple(each.kinds.values())) for each in managed if each],
    )
