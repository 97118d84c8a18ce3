"""`ucp graph`: draws the topology with the state of each part."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from k8s_ucp.cli.command import Invocation, declare, examples, invocation
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.inspect import status
from k8s_ucp.topology_graph.dot import dot
from k8s_ucp.topology_graph.graph import Graph, topology_graph
from k8s_ucp.topology_graph.mermaid import mermaid
from k8s_ucp.topology_graph.svg import svg

app = declare()


class Notation(StrEnum):
    """-o"""

    mermaid = "mermaid"
    svg = "svg"
    dot = "dot"


WRITERS = {Notation.mermaid: mermaid, Notation.svg: svg, Notation.dot: dot}


@app.command(
    "graph",
    epilog=examples(
        "ucp graph -o svg > topology.svg",
        "ucp graph -o dot | dot -Tpng > topology.png",
    ),
)
def graph(
    ctx: typer.Context,
    output: Annotated[
        Notation,
        typer.Option(
            "-o",
            "--output",
            help="Output format: mermaid (for Markdown), svg or dot (for Graphviz).",
        ),
    ] = Notation.mermaid,
) -> None:
    """Draw the topology: repositories, core cluster, environments and apps, with their states.

    A topology that was never started is drawn as ucp.yaml declares it.
    """
    call = invocation(ctx)
    call.console.data(WRITERS[output](_graph(call)).rstrip("\n"))


def _graph(call: Invocation) -> Graph:
    from k8s_ucp.topology import load

    file = call.workspace.topology_file
    if not call.topology and not call.workspace.topologies() and file.exists():
        return topology_graph(load(file), {})
    from k8s_ucp.cli.inspection.status import collect

    context = chosen_view(call)
    found = collect(context)
    if not found.core_ready:
        # Without the core, all environments would be missing; the topology has them.
        return topology_graph(context.topology, {})
    return topology_graph(context.topology, status.summarize(context.topology, found))
