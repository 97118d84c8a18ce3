"""What `ucp graph` draws; each notation is well-formed for any name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from k8s_ucp.topology import Topology, parse
from k8s_ucp.topology_graph.dot import dot
from k8s_ucp.topology_graph.graph import Cluster, Graph, GraphNode, NodeState, topology_graph
from k8s_ucp.topology_graph.mermaid import mermaid
from k8s_ucp.topology_graph.svg import svg

TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - {name: stage, cluster: {provider: embedded}}
    - {name: prod, cluster: {provider: embedded}, promotesFrom: stage}
  apps: [{name: echo, image: ealen/echo-server, tag: 0.9.2}]
"""


@pytest.fixture
def topology() -> Topology:
    return parse(TOPOLOGY, Path("ucp.yaml"))


def environment(name: str, **cluster: Any) -> dict[str, Any]:
    about = {
        "name": f"demo-{name}",
        "provider": "embedded",
        "ready": True,
        "registered": True,
        "reachable": True,
        "simulated": True,
    }
    return {"name": name, "state": "running", "cluster": about | cluster}


def application(name: str, sync: str | None = "Synced", health: str | None = "Healthy") -> Any:
    app, _, where = name.rpartition("-")
    return {
        "name": name,
        "app": app,
        "environment": where,
        "sync": sync,
        "health": health,
        "images": ["ealen/echo-server:0.9.2"],
    }


def status(*environments: Any, applications: Any = ()) -> dict[str, Any]:
    return {
        "core": {"name": "demo-core", "provider": "embedded", "ready": True},
        "components": [{"name": "argocd", "version": "v3.5.7", "ready": False}],
        "environments": list(environments),
        "applications": list(applications),
    }


def states(graph: Graph) -> dict[str, NodeState]:
    clusters = (graph.core, *graph.environments)
    nodes = [*graph.repositories, *clusters, *(node for each in clusters for node in each.nodes)]
    return {each.id: each.state for each in nodes}


def test_a_topology_that_was_never_started_is_drawn_as_declared(topology: Topology) -> None:
    graph = topology_graph(topology, {})
    assert [each.lines[0] for each in graph.environments] == ["stage", "prod"]
    assert [each.id for each in graph.environments[0].nodes] == ["app-echo-stage"]
    assert set(states(graph).values()) == {NodeState.unknown}


def test_promotions_are_drawn_from_one_environment_to_the_next(topology: Topology) -> None:
    edges = topology_graph(topology, {}).edges
    promotion = [(each.source, each.target) for each in edges if each.label == "promotion"]
    assert promotion == [("env-stage", "env-prod")]


def test_an_environment_that_is_not_in_ucp_yaml_is_drawn(topology: Topology) -> None:
    graph = topology_graph(topology, status(environment("stage"), environment("eu")))
    assert [each.lines[0] for each in graph.environments] == ["stage", "eu"]
    assert not [each for each in graph.edges if each.label == "promotion"]


@pytest.mark.parametrize(
    ("cluster", "state"),
    [
        ({}, NodeState.ready),
        ({"registered": False, "reachable": False}, NodeState.waiting),
        ({"ready": False}, NodeState.waiting),
        ({"reachable": False}, NodeState.failing),
    ],
)
def test_a_cluster_is_drawn_with_its_state(
    topology: Topology, cluster: Any, state: NodeState
) -> None:
    graph = topology_graph(topology, status(environment("stage", **cluster)))
    assert states(graph)["env-stage"] is state


@pytest.mark.parametrize(
    ("sync", "health", "state"),
    [
        ("Synced", "Healthy", NodeState.ready),
        ("Synced", "Progressing", NodeState.waiting),
        ("OutOfSync", "Healthy", NodeState.waiting),
        ("Synced", "Degraded", NodeState.failing),
        ("OutOfSync", "Missing", NodeState.failing),
        ("Synced", "Suspended", NodeState.waiting),
        (None, None, NodeState.unknown),
    ],
)
def test_an_application_is_drawn_with_its_state(
    topology: Topology, sync: str | None, health: str | None, state: NodeState
) -> None:
    found = status(environment("stage"), applications=[application("echo-stage", sync, health)])
    assert states(topology_graph(topology, found))["app-echo-stage"] is state


def test_a_component_that_is_not_ready_is_drawn_as_failing(topology: Topology) -> None:
    graph = topology_graph(topology, status(environment("stage")))
    assert states(graph)["component-argocd"] is NodeState.failing


HOSTILE = 'a"b]<script>&|`#\\end'


@pytest.fixture
def hostile() -> Graph:
    node = GraphNode("app-x", (HOSTILE, "second"), NodeState.failing)
    return Graph(
        title=HOSTILE,
        repositories=(GraphNode("repo-core", (HOSTILE,)),),
        core=Cluster("core", (HOSTILE,), NodeState.ready, (node,)),
        environments=(),
        edges=(),
    )


def test_mermaid_escapes_names(hostile: Graph) -> None:
    text = mermaid(hostile)
    assert text.startswith("flowchart LR\n")
    assert "<script>" not in text
    # Every quote opens or closes a label; an unescaped one of a name would make the count odd.
    assert all(line.count('"') % 2 == 0 for line in text.splitlines())


def test_mermaid_has_a_class_for_every_state(topology: Topology) -> None:
    text = mermaid(topology_graph(topology, {}))
    used = set(re.findall(r":::(\w+)|class \w+ (\w+)", text))
    assert {each for pair in used for each in pair if each} <= set(NodeState)
    assert all(f"classDef {each} " in text for each in NodeState)


def test_dot_escapes_names(hostile: Graph) -> None:
    text = dot(hostile)
    assert text.count("{") == text.count("}")
    quoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert "script" not in quoted
    assert '"' not in quoted


def test_the_svg_is_well_formed_and_names_everything(topology: Topology) -> None:
    drawn = ElementTree.fromstring(svg(topology_graph(topology, {})))
    words = {each.text for each in drawn.iter() if each.tag.endswith("text")}
    assert {"stage", "prod", "echo", "argocd", "demo-core", "core repository"} <= words


def test_the_svg_escapes_names(hostile: Graph) -> None:
    drawn = ElementTree.fromstring(svg(hostile))
    assert not [each for each in drawn.iter() if each.tag.endswith("script")]
    assert HOSTILE in {each.text for each in drawn.iter()}


def test_nodes_of_the_svg_do_not_overlap(topology: Topology) -> None:
    environments = [environment(f"env{number}") for number in range(4)]
    apps = [application(f"app{n}-env{e}") for n in range(7) for e in range(4)]
    drawn = ElementTree.fromstring(
        svg(topology_graph(topology, status(*environments, applications=apps)))
    )
    boxes = [
        tuple(float(each.get(key, "0")) for key in ("x", "y", "width", "height"))
        for each in drawn
        if each.tag.endswith("rect") and each.get("stroke-width") == "2"
    ]
    assert len(boxes) == 5
    for one in boxes:
        for other in boxes:
            apart = (
                one[0] + one[2] <= other[0]
                or other[0] + other[2] <= one[0]
                or one[1] + one[3] <= other[1]
                or other[1] + other[3] <= one[1]
            )
            assert one is other or apart


def test_mermaid_without_states_sets_no_colors(topology: Topology) -> None:
    text = mermaid(topology_graph(topology, {}), states=False)
    assert "class" not in text
    assert ":::" not in text
    assert 'app_echo_stage["echo"]' in text
