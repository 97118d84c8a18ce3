"""Adds the diagram of the topology to the READMEs of both repositories."""

from __future__ import annotations

from dataclasses import replace

from k8s_ucp.topology import Topology
from k8s_ucp.topology_graph.graph import Cluster, GraphNode, topology_graph
from k8s_ucp.topology_graph.mermaid import mermaid

MOST_APPS = 12
"""Above this number, apps are only counted: forges limit the size of diagrams."""

_PLACEHOLDER = b"<!-- picture -->\n"
"""Placeholder in the templates; not at the end, where text that users append would conflict."""
_BLOCK = """```mermaid
{}```
As `ucp.yaml` declares it; `ucp graph` draws what runs, with its states.
"""


def with_picture(readme: bytes, topology: Topology) -> bytes:
    """A README with the diagram, which forges render."""
    graph = topology_graph(topology, {})
    environments = tuple(map(_shortened, graph.environments))
    drawn = mermaid(replace(graph, environments=environments), states=False)
    return readme.replace(_PLACEHOLDER, _BLOCK.format(drawn).encode())


def _shortened(cluster: Cluster) -> Cluster:
    if len(cluster.nodes) <= MOST_APPS:
        return cluster
    return replace(
        cluster, nodes=(GraphNode(f"apps-{cluster.id}", (f"{len(cluster.nodes)} apps",)),)
    )
