"""The picture of the topology in the READMEs of both repositories, as ucp.yaml declares it."""

from __future__ import annotations

from dataclasses import replace

from k8s_ucp.topology import Topology
from k8s_ucp.topology_graph.graph import Cluster, GraphNode, topology_graph
from k8s_ucp.topology_graph.mermaid import mermaid

MOST_APPS = 12
"""More are counted: forges limit the size of a diagram, and nobody reads so many boxes."""

_PLACE = b"<!-- picture -->\n"
"""In the templates: a picture at the end would meet what people append."""
_BLOCK = """```mermaid
{}```
As `ucp.yaml` declares it; `ucp graph` draws what runs, with its states.
"""


def with_picture(readme: bytes, topology: Topology) -> bytes:
    """A README with its picture; forges draw it."""
    graph = topology_graph(topology, {})
    environments = tuple(map(_shortened, graph.environments))
    drawn = mermaid(replace(graph, environments=environments), states=False)
    return readme.replace(_PLACE, _BLOCK.format(drawn).encode())


def _shortened(cluster: Cluster) -> Cluster:
    if len(cluster.nodes) <= MOST_APPS:
        return cluster
    return replace(
        cluster, nodes=(GraphNode(f"apps-{cluster.id}", (f"{len(cluster.nodes)} apps",)),)
    )
