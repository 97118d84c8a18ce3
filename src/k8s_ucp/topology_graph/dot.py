"""A graph in Graphviz's DOT language. https://graphviz.org/doc/info/lang.html"""

from __future__ import annotations

from collections.abc import Iterator

from k8s_ucp.topology_graph.graph import COLORS, Cluster, Graph


def dot(graph: Graph) -> str:
    """The text of a digraph, with a trailing newline."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.title)} {{"
    yield "  rankdir=LR; compound=true; fontname=sans;"
    yield '  node [shape=box, style="filled,rounded", fontname=sans];'
    for node in graph.repositories:
        yield f"  {_quoted(node.id)} [label={_quoted(*node.lines)}, shape=cylinder];"
    for cluster in (graph.core, *graph.environments):
        yield from _cluster(cluster)
    for edge in graph.edges:
        ends = (
            *([f"ltail={_quoted('cluster-' + edge.source)}"] if _is_cluster(edge.source) else []),
            *([f"lhead={_quoted('cluster-' + edge.target)}"] if _is_cluster(edge.target) else []),
        )
        about = ", ".join((f"label={_quoted(edge.label)}", *ends))
        yield f"  {_anchor(edge.source)} -> {_anchor(edge.target)} [{about}];"
    yield "}"


def _cluster(cluster: Cluster) -> Iterator[str]:
    line, fill, _ = COLORS[cluster.state]
    yield f"  subgraph {_quoted('cluster-' + cluster.id)} {{"
    yield f'    label={_quoted(*cluster.lines)}; color="{line}"; style=rounded;'
    # Edges can only connect nodes; an invisible node represents the box.
    yield f'    {_anchor(cluster.id)} [shape=point, style=invis, label=""];'
    for node in cluster.nodes:
        line, fill, _ = COLORS[node.state]
        colors = f'color="{line}", fillcolor="{fill}"'
        yield f"    {_quoted(node.id)} [label={_quoted(*node.lines)}, {colors}];"
    yield "  }"


def _is_cluster(identity: str) -> bool:
    return not identity.startswith("repo-")


def _anchor(identity: str) -> str:
    return _quoted(f"anchor-{identity}" if _is_cluster(identity) else identity)


def _quoted(*lines: str) -> str:
    escaped = (each.replace("\\", "\\\\").replace('"', '\\"') for each in lines)
    return '"' + "\\n".join(escaped) + '"'
