"""A graph as a self-contained picture: SVG without scripts, fonts or external resources.

Three columns: repositories, the core cluster, and the environments from top to bottom in promotion
order. Units are pixels; text width is estimated from an average letter width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from k8s_ucp.topology_graph.graph import COLORS, Cluster, Graph, GraphNode

_INK, _QUIET = "#1f2933", "#52606d"
LETTER, LINE, PAD, GAP, MARGIN = 6.8, 18, 12, 14, 24
COLUMN_GAP = 150
ACROSS = 3
"""Maximum nodes per row of a cluster."""


@dataclass(frozen=True)
class _Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


def svg(graph: Graph) -> str:
    """An SVG document, with a trailing newline."""
    boxes = _positions(graph)
    width = max(each.right for each in boxes.values()) + 2 * MARGIN
    height = max(each.bottom for each in boxes.values()) + MARGIN
    clusters = (graph.core, *graph.environments)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>Topology {escape(graph.title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{_QUIET}"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(line for each in graph.repositories for line in _node(each, boxes[each.id])),
        *(line for each in clusters for line in _cluster(each, boxes[each.id])),
        *_edges(graph, boxes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _positions(graph: Graph) -> dict[str, _Box]:
    """Position of each repository and cluster, by id."""
    boxes: dict[str, _Box] = {}
    sizes = {each.id: _text_size(each.lines) for each in graph.repositories}
    wide = max(width for width, _ in sizes.values())
    x = MARGIN + wide + COLUMN_GAP
    width, height = _cluster_size(graph.core)
    boxes[graph.core.id] = _Box(x, MARGIN, width, height)
    y: float = MARGIN
    for each in graph.environments:
        its_width, its_height = _cluster_size(each)
        boxes[each.id] = _Box(x + width + COLUMN_GAP, y, its_width, its_height)
        y += its_height + 3 * GAP
    y = MARGIN
    for node in graph.repositories:
        boxes[node.id] = _Box(MARGIN, y, wide, sizes[node.id][1])
        y = max(y + sizes[node.id][1], boxes[graph.core.id].bottom) + 3 * GAP
    return boxes


def _text_size(lines: Sequence[str]) -> tuple[float, float]:
    return max(map(len, lines)) * LETTER + 2 * PAD, len(lines) * LINE + PAD


def _rows(cluster: Cluster) -> list[Sequence[GraphNode]]:
    return [cluster.nodes[at : at + ACROSS] for at in range(0, len(cluster.nodes), ACROSS)]


def _row_size(row: Sequence[GraphNode]) -> tuple[float, float]:
    sizes = [_text_size(each.lines) for each in row]
    return sum(width for width, _ in sizes) + GAP * (len(sizes) - 1), max(h for _, h in sizes)


def _cluster_size(cluster: Cluster) -> tuple[float, float]:
    width, height = _text_size(cluster.lines)
    for row in _rows(cluster):
        row_width, row_height = _row_size(row)
        width, height = max(width, row_width + 2 * PAD), height + row_height + GAP
    return width, height


def _cluster(cluster: Cluster, box: _Box) -> Iterator[str]:
    line, _, _ = COLORS[cluster.state]
    yield _rect(box, line, "#f7f9fa", 2)
    yield from _text(cluster.lines, box.x + PAD, box.y, anchor="start")
    y = box.y + _text_size(cluster.lines)[1]
    for row in _rows(cluster):
        x = box.x + PAD
        for node in row:
            width, height = _text_size(node.lines)
            yield from _node(node, _Box(x, y, width, height))
            x += width + GAP
        y += _row_size(row)[1] + GAP


def _node(node: GraphNode, box: _Box) -> Iterator[str]:
    line, fill, _ = COLORS[node.state]
    yield _rect(box, line, fill, 1.2)
    yield from _text(node.lines, box.x + box.width / 2, box.y, anchor="middle")


def _rect(box: _Box, line: str, fill: str, stroke: float) -> str:
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6" fill="{fill}" stroke="{line}" stroke-width="{stroke}"/>'
    )


def _text(lines: Sequence[str], x: float, y: float, *, anchor: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        weight = ' font-weight="600"' if number == 0 else ""
        ink = _INK if number == 0 else _QUIET
        at = y + PAD / 2 + LINE * (number + 0.75)
        yield (
            f'<text x="{x:.1f}" y="{at:.1f}" text-anchor="{anchor}"{weight} fill="{ink}">'
            f"{escape(line)}</text>"
        )


def _edges(graph: Graph, boxes: dict[str, _Box]) -> Iterator[str]:
    environments = {each.id for each in graph.environments}
    bend = boxes[graph.core.id].right  # where edges leave the core's column, so none crosses it
    for edge in graph.edges:
        source, target = boxes[edge.source], boxes[edge.target]
        if {edge.source, edge.target} <= environments:
            x = max(source.right, target.right) + 40
            path = (
                f"M{source.right:.1f} {source.middle:.1f} C{x:.1f} {source.middle:.1f} "
                f"{x:.1f} {target.middle:.1f} {target.right:.1f} {target.middle:.1f}"
            )
            yield from _edge(path, edge.label, target.right - PAD, target.y - GAP)
            continue
        start = bend if edge.target in environments else source.right
        share = 1 / 3 if edge.source == graph.core.id else 2 / 3
        end = target.y + target.height * share
        half = (start + target.x) / 2
        path = (
            f"M{source.right:.1f} {source.middle:.1f} H{start:.1f} C{half:.1f} "
            f"{source.middle:.1f} {half:.1f} {end:.1f} {target.x:.1f} {end:.1f}"
        )
        yield from _edge(path, edge.label, target.x - PAD, end - PAD / 2)


def _edge(path: str, label: str, x: float, y: float) -> Iterator[str]:
    """label: right-aligned at x, y."""
    yield f'<path d="{path}" fill="none" stroke="{_QUIET}" marker-end="url(#tip)"/>'
    yield (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" font-size="11" fill="{_QUIET}">'
        f"{escape(label)}</text>"
    )
