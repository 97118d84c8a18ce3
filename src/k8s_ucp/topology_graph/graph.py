"""The graph of a topology: its parts with their states, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from k8s_ucp.redaction import without_secrets
from k8s_ucp.topology import Topology

Status = Mapping[str, Any]
"""The data of `ucp status -o json`; empty if nothing was started."""


class NodeState(StrEnum):
    """State of a part; every output format renders each differently."""

    ready = "ready"
    waiting = "waiting"
    failing = "failing"
    unknown = "unknown"


COLORS = {
    NodeState.ready: ("#2e7d4f", "#dff3e4", "#12351f"),
    NodeState.waiting: ("#a97800", "#fff3d1", "#3d2c00"),
    NodeState.failing: ("#b3261e", "#fbdcdc", "#4a0f0c"),
    NodeState.unknown: ("#78909c", "#eceff1", "#263238"),
}
"""{state: (line color, fill color, text color)}"""
_HEALTH = {
    "Healthy": NodeState.ready,
    "Progressing": NodeState.waiting,
    "Suspended": NodeState.waiting,
    "Unknown": NodeState.unknown,
}
"""Argo CD's health; any other is a failure."""


@dataclass(frozen=True)
class GraphNode:
    """One part. lines: its name, then details."""

    id: str
    lines: tuple[str, ...]
    state: NodeState = NodeState.unknown


@dataclass(frozen=True)
class Cluster:
    """A cluster with what runs on it; clusters are drawn as boxes around their nodes."""

    id: str
    lines: tuple[str, ...]
    state: NodeState
    nodes: tuple[GraphNode, ...]


@dataclass(frozen=True)
class Edge:
    """From one part to another, both by id."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True)
class Graph:
    """Repositories feed the core; the core creates and feeds environments, in promotion order."""

    title: str
    repositories: tuple[GraphNode, ...]
    core: Cluster
    environments: tuple[Cluster, ...]
    edges: tuple[Edge, ...]


def topology_graph(topology: Topology, status: Status) -> Graph:
    """What the topology declares and what runs, including environments that only git has."""
    environments = tuple(_environments(topology, status))
    return Graph(
        title=topology.name,
        repositories=(
            GraphNode("repo-core", ("core repository", _address(topology, "core"))),
            GraphNode("repo-apps", ("app repository", _address(topology, "apps"))),
        ),
        core=_core(topology, status),
        environments=environments,
        edges=tuple(_edges(topology, environments)),
    )


def _address(topology: Topology, name: str) -> str:
    if topology.spec.git.provider == "local":
        return f"gitops/{topology.name}/{name}.git"
    return without_secrets(str(getattr(topology.spec.git, name)))


def _core(topology: Topology, status: Status) -> Cluster:
    core = status.get("core") or {}
    components = status.get("components") or [
        {"name": each} for each in ("argocd", "crossplane", "reconciler")
    ]
    return Cluster(
        id="core",
        lines=(topology.core_cluster, f"core cluster, {topology.spec.core.provider}"),
        state=_ready(core.get("ready")),
        nodes=tuple(
            GraphNode(
                f"component-{each['name']}",
                (each["name"], *([each["version"]] if each.get("version") else [])),
                _ready(each.get("ready")),
            )
            for each in components
        ),
    )


def _environments(topology: Topology, status: Status) -> Iterator[Cluster]:
    found = status.get("environments")
    if found is None:
        for each in topology.spec.environments:
            apps = tuple(
                GraphNode(f"app-{app.name}-{each.name}", (app.name,)) for app in topology.spec.apps
            )
            words = (each.name, f"{topology.app_cluster(each.name)}, {each.cluster.provider}")
            yield Cluster(f"env-{each.name}", words, NodeState.unknown, apps)
        return
    applications = status.get("applications") or []
    for each in found:
        cluster, name = each["cluster"], each["name"]
        how = f"{cluster['provider']}, simulated" if cluster["simulated"] else cluster["provider"]
        nodes = (_application(app) for app in applications if app["environment"] == name)
        yield Cluster(
            id=f"env-{name}",
            lines=(name, f"{cluster['name']}, {how}", *_unusual(each)),
            state=_cluster_state(cluster),
            nodes=tuple(nodes),
        )


def _unusual(environment: Status) -> list[str]:
    return [] if environment["state"] == "running" else [str(environment["state"])]


def _cluster_state(cluster: Status) -> NodeState:
    if not cluster["reachable"]:
        return NodeState.failing if cluster["registered"] else NodeState.waiting
    return NodeState.ready if cluster["ready"] and cluster["registered"] else NodeState.waiting


def _application(item: Status) -> GraphNode:
    health, sync = item["health"] or "Unknown", item["sync"] or "Unknown"
    state = _HEALTH.get(health, NodeState.failing)
    if state is NodeState.ready and sync != "Synced":
        state = NodeState.waiting
    tags = sorted({_tag(each) for each in item["images"]})
    lines = (item["app"] or item["name"], *([", ".join(tags)] if tags else []))
    return GraphNode(f"app-{item['name']}", (*lines, f"{sync}, {health}"), state)


def _tag(image: str) -> str:
    """Its tag, or the beginning of its digest."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or digest.partition(":")[2][:12] or "latest"


def _edges(topology: Topology, environments: tuple[Cluster, ...]) -> Iterator[Edge]:
    yield Edge("repo-core", "core", "Argo CD syncs")
    known = {each.id for each in environments}
    for each in environments:
        yield Edge("core", each.id, "creates")
        yield Edge("repo-apps", each.id, "Argo CD syncs")
    for declared in topology.spec.environments:
        source, target = f"env-{declared.promotes_from}", f"env-{declared.name}"
        if declared.promotes_from and {source, target} <= known:
            yield Edge(source, target, "promotion")


def _ready(value: bool | None) -> NodeState:
    return {True: NodeState.ready, False: NodeState.failing, None: NodeState.unknown}[value]
