"""Objects applied before the reconciler starts, because Argo CD would apply them too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp.components.manifests import Manifest
from k8s_ucp.context import StartContext
from k8s_ucp.gitops.publish.addresses import read_addresses
from k8s_ucp.steps.startup import apply_manifests
from k8s_ucp.steps.startup.apply_manifests import _foundation, apply_root
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace

CORE = Path(__file__).parents[3] / "golden" / "trees" / "shop" / "core"


def read(*under: str) -> dict[str, bytes]:
    files = (each for folder in under for each in (CORE / folder).rglob("*") if each.is_file())
    found = {each.relative_to(CORE).as_posix(): each.read_bytes() for each in files}
    # Manifests of the engines are abridged in the golden tree.
    return {path: text for path, text in found.items() if "/engine/" not in path}


def found(edited: Mapping[str, bytes] = MappingProxyType({})) -> set[tuple[str, str | None, str]]:
    """Kind, namespace and name of each object. edited: files changed by users in the repository."""

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


def test_the_reconciler_can_watch_namespaces_of_teams_from_its_start() -> None:
    """It becomes ready after listing the objects there, which needs the Role and RoleBinding."""
    topology = load(CORE / "ucp.yaml")
    there = found()
    assert topology.spec.teams
    for team in topology.spec.teams:
        namespace = f"team-{team.name}"
        assert ("Namespace", None, namespace) in there
        assert ("Role", namespace, "k8s-ucp-reconciler-mirrors") in there
        assert ("RoleBinding", namespace, "k8s-ucp-reconciler-mirrors") in there


def test_unedited_crds_of_the_platform_are_applied_before_crossplane() -> None:
    names = {name for kind, _, name in found() if kind == "CustomResourceDefinition"}
    assert {"computes.k8s-ucp.io", "postgreses.k8s-ucp.io"} <= names
    path = "api/compute/definition.yaml"
    edited = found({path: read("api")[path] + b"# ours\n"})
    assert found() - edited == {("CustomResourceDefinition", None, "computes.k8s-ucp.io")}


class RecordingKube:
    """Keeps the ConfigMap with the digests; everything else exists."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def find(self, *_: object) -> dict[str, Any]:
        return {"data": self.notes}

    def apply(self, item: dict[str, Any], **_: object) -> None:
        self.notes |= item["data"]


def test_crds_are_not_applied_again_because_something_else_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crd = Manifest("v1", "CustomResourceDefinition", "x", None, "")
    applied: list[str] = []

    def record(_: object, items: Sequence[Manifest]) -> None:
        applied.extend(each.kind for each in items)

    monkeypatch.setattr(apply_manifests, "apply_all", record)
    monkeypatch.setattr(apply_manifests, "wait_served", lambda *_, **__: None)
    monkeypatch.setattr(apply_manifests, "is_seeded", lambda *_: False)
    monkeypatch.setattr(apply_manifests, "keep_seed", lambda *_: None)
    context: Any = SimpleNamespace(kube=RecordingKube(), adopts=lambda _: True)
    for name in ("first", "second", "second"):
        foundation = [crd], [], [Manifest("v1", "AppProject", name, "argocd", name)]
        monkeypatch.setattr(apply_manifests, "_foundation", lambda _, found=foundation: found)
        apply_manifests.apply_foundation.run(context, lambda _: None)
    assert applied == ["CustomResourceDefinition", "AppProject", "AppProject"]


@pytest.mark.parametrize(("moved", "applied"), [(True, ["clusters", "root"]), (False, [])])
def test_the_root_application_is_applied_again_if_the_workspace_was_moved(
    moved: bool, applied: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another command has published the new addresses: Argo CD can't read them."""
    topology = load(CORE / "ucp.yaml")
    gitops = Workspace.at(Path("/nowhere")).gitops(topology.name)
    address = "file:///before/core.git" if moved else read_addresses(topology, gitops).core
    root = {"spec": {"source": {"repoURL": address}}}
    context: Any = SimpleNamespace(
        topology=topology,
        gitops=gitops,
        published=SimpleNamespace(core=SimpleNamespace(read=read, changed=False)),
        kube=SimpleNamespace(find=lambda *_: root),
    )
    found: list[str] = []
    monkeypatch.setattr(
        apply_manifests, "apply_all", lambda _, items: found.extend(each.name for each in items)
    )
    apply_root(cast(StartContext, context), lambda _: None)
    assert found == applied
