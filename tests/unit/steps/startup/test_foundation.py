"""What is applied before the reconciler starts, because Argo CD would bring it later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

from k8s_ucp.context import StartContext
from k8s_ucp.steps.startup.apply_manifests import _foundation
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace

CORE = Path(__file__).parents[3] / "golden" / "trees" / "shop" / "core"


def read(*under: str) -> dict[str, bytes]:
    files = (each for folder in under for each in (CORE / folder).rglob("*") if each.is_file())
    found = {each.relative_to(CORE).as_posix(): each.read_bytes() for each in files}
    # Those of the engines are abridged there.
    return {path: text for path, text in found.items() if "/engine/" not in path}


def found(edited: Mapping[str, bytes] = MappingProxyType({})) -> set[tuple[str, str | None, str]]:
    """Kind, namespace and name of each. edited: files that people changed in the repository."""

    def read_edited(*under: str) -> dict[str, bytes]:
        there = read(*under)
        return there | {path: text for path, text in edited.items() if path in there}

    clone = SimpleNamespace(read=lambda _, *under: read(*under))
    published = SimpleNamespace(core=SimpleNamespace(read=read_edited, clone=clone))
    topology = load(CORE / "ucp.yaml")
    gitops = Workspace.at(Path("/nowhere")).gitops(topology.name)
    context: Any = SimpleNamespace(topology=topology, published=published, gitops=gitops)
    kinds, _, _ = _foundation(cast(StartContext, context))
    return {(each.kind, each.namespace, each.name) for each in kinds}


def test_the_reconciler_may_watch_teams_namespaces_from_its_start() -> None:
    """It is ready when it has listed what is there, and may not before it has the right."""
    topology = load(CORE / "ucp.yaml")
    there = found()
    assert topology.spec.teams
    for team in topology.spec.teams:
        namespace = f"team-{team.name}"
        assert ("Namespace", None, namespace) in there
        assert ("Role", namespace, "k8s-ucp-reconciler-mirrors") in there
        assert ("RoleBinding", namespace, "k8s-ucp-reconciler-mirrors") in there


def test_the_platforms_kinds_are_there_before_crossplane_unless_people_changed_them() -> None:
    names = {name for kind, _, name in found() if kind == "CustomResourceDefinition"}
    assert {"computes.k8s-ucp.io", "postgreses.k8s-ucp.io"} <= names
    path = "api/compute/definition.yaml"
    edited = found({path: read("api")[path] + b"# ours\n"})
    assert found() - edited == {("CustomResourceDefinition", None, "computes.k8s-ucp.io")}
