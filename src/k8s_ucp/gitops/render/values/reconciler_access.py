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
    """Where mirrors copy from, beside those."""
    made: Sequence[str]
    """Those of both that nothing else makes."""
    owners: Sequence[tuple[str, Sequence[str]]]
    """Kinds of managed resources that the environments are made of."""


def reads(topology: Topology) -> Reads:
    """Sorted, so that the same topology gives the same bytes."""
    spec = topology.spec
    sources = sorted({CLUSTERS, *spec.reconciler.source_namespaces})
    mirrored = sorted({each.source.namespace for each in spec.mirrors} - set(sources))
    used = sorted({each.cluster.provider for each in spec.environments})
    managed = [PROVIDERS[each].managed for each in used]
    return Reads(
        sources=sources,
        mirrored=mirrored,
        made=sorted({*sources, *mirrored} - set(BUILT_IN)),
        owners=[(each.group, tuple(each.kinds.values())) for each in managed if each],
    )
