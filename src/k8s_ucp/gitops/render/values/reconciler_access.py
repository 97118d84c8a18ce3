"""What the reconciler may read on the core cluster, as the topology asks for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

CLUSTERS = "ucp-clusters"
ALWAYS_THERE = (CLUSTERS, "crossplane-system", "argocd")
"""Namespaces that have a file of their own."""
BUILT_IN = (*ALWAYS_THERE, "default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True)
class Reads:
    """Namespaces, each in one list only."""

    sources: Sequence[str]
    """Where kubeconfig Secrets and Syncers count; where clusters are declared, always."""
    mirrored: Sequence[str]
    """Where mirrors copy from, beside those and the namespaces of teams."""
    copied: Sequence[str]
    """Where mirrors may copy from, beside the sources: namespaces of teams too."""
    made: Sequence[str]
    """Those of both that nothing else makes."""
    owners: Sequence[tuple[str, Sequence[str]]]
    """Kinds of managed resources that the environments are made of."""


def mirror_sources(topology: Topology) -> tuple[str, ...]:
    """Namespaces that mirrors copy from: those of ucp.yaml's mirrors, and every team's."""
    spec = topology.spec
    mirrored = {each.source.namespace for each in spec.mirrors}
    return tuple(sorted({*mirrored, *(each.namespace for each in spec.teams)}))


def reads(topology: Topology) -> Reads:
    """Sorted, so that the same topology gives the same bytes."""
    spec = topology.spec
    sources = sorted({CLUSTERS, *spec.reconciler.source_namespaces})
    # In a team's namespace the team's own files say so.
    own = {*sources, *(each.namespace for each in spec.teams)}
    mirrored = sorted({each.source.namespace for each in spec.mirrors} - own)
    used = sorted({each.cluster.provider for each in spec.environments})
    managed = [PROVIDERS[each].managed for each in used]
    return Reads(
        sources=sources,
        mirrored=mirrored,
        copied=[each for each in mirror_sources(topology) if each not in sources],
        made=sorted({*sources, *mirrored} - set(BUILT_IN)),
        owners=[(each.group, tuple(each.kinds.values())) for each in managed if each],
    )
