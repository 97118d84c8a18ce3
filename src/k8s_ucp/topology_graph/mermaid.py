"""A graph as a Mermaid flowchart, which forges render in Markdown. https://mermaid.js.org"""

from __future__ import annotations

import re
from collections.abc import Iterator

from k8s_ucp.topology_graph.graph import COLORS, Graph, GraphNode


def mermaid(graph: Graph, *, states: bool = True) -> str:
    """The text of a flowchart, with a trailing newline. states: color each by its state."""
    return "\n".join(_lines(graph, states)) + "\n"


def _lines(graph: Graph, states: bool) -> Iterator[str]:
    clusters = (graph.core, *graph.environments)
    yield "flowchart LR"
    for node in graph.repositories:
        yield f"  {_node(node, '[(', ')]', states)}"
    for cluster in clusters:
        yield f'  subgraph {_id(cluster.id)}["{_label(cluster.lines)}"]'
        for node in cluster.nodes:
            yield f"    {_node(node, '[', ']', states)}"
        yield "  end"
    for edge in graph.edges:
        label = f"|{_text(edge.label)}|" if edge.label else ""
        yield f"  {_id(edge.source)} -->{label} {_id(edge.target)}"
    if not states:
        return
    for state, (line, fill, ink) in COLORS.items():
        yield f"  classDef {state} fill:{fill},stroke:{line},color:{ink}"
    for cluster in clusters:
        yield f"  class {_id(cluster.id)} {cluster.state}"


def _node(node: GraphNode, opening: str, closing: str, states: bool) -> str:
    end = f":::{node.state}" if states else ""
    return f'{_id(node.id)}{opening}"{_label(node.lines)}"{closing}{end}'


def _id(name: str) -> str:
    """A valid id. Our prefixes keep it from being a Mermaid keyword, such as "end"."""
    return re.sub(r"[^a-zA-Z0-9]", "_", name)


def _label(lines: tuple[str, ...]) -> str:
    return "<br/>".join(map(_text, lines))


def _text(words: str) -> str:
    """Escapes characters that end quoted text or have a meaning in Mermaid."""
    return "".join(f"#{ord(each)};" if each in '"#<>&|`' else each for each in words)
