"""Whatever a topology asks for can be built and checked, and the API server takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from k8s_ucp.gitops.build_many import build_many
from k8s_ucp.gitops.check import check_rendered
from k8s_ucp.gitops.check_files import Tree
from k8s_ucp.gitops.check_kinds import is_built_in
from k8s_ucp.gitops.manifests import read_manifests
from k8s_ucp.gitops.publish import render_to
from k8s_ucp.gitops.render import Rendered, render
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from tests.control_planes import control_planes, made, namespace
from tests.random_topologies import topologies
from tests.unit.gitops.topologies import FACTS

EXAMPLES, SOAKED = 12, 400
"""Topologies in `make test`, and in `make soak`."""


def rendered(topology: Topology, text: bytes) -> Rendered:
    git = topology.spec.git
    facts = replace(
        FACTS,
        topology_file=text,
        manifests=read_manifests(topology, Path()),
        core_url=git.core or FACTS.core_url,
        apps_url=git.apps or FACTS.apps_url,
        engine={},
        reconciler_image="k8s-ucp/reconciler:0.1.0",
        repositories="/srv/k8s-ucp/git",
        owner=1000,
    )
    return render(topology, facts)


def with_examples(count: int) -> Callable[[Any], Any]:
    """So many topologies, always the same ones; a failing one isn't made smaller: too slow."""

    def decorate(test: Any) -> Any:
        chosen = settings(
            deadline=None,
            max_examples=count,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            database=None,
        )
        return seed(20261121)(chosen(given(topologies())(test)))

    return decorate


@with_examples(EXAMPLES)
def test_nothing_is_wrong(toolbox: Toolbox, given_topology: tuple[Topology, bytes]) -> None:
    topology, text = given_topology
    found = check_rendered(toolbox.path("kustomize"), rendered(topology, text))
    assert not found, f"{found}\n{text.decode()}"


@pytest.fixture(scope="module")
def kube(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    folder = tmp_path_factory.mktemp("dry")
    with control_planes(folder, toolbox) as planes:
        found = made(planes.provider(), "dry")
        found.apply(namespace("app"))
        yield found


@pytest.mark.engines
@with_examples(EXAMPLES)
def test_the_api_server_takes_built_in_kinds(
    toolbox: Toolbox,
    kube: Kube,
    tmp_path_factory: pytest.TempPathFactory,
    given_topology: tuple[Topology, bytes],
) -> None:
    topology, text = given_topology
    folder = tmp_path_factory.mktemp("tree")
    render_to(folder, rendered(topology, text))
    refused = [
        f"{item['kind']} {item['metadata']['name']}: {error}"
        for item in built_in(toolbox.path("kustomize"), folder)
        if (error := dry_run(kube, item))
    ]
    assert not refused, "\n".join([*refused, text.decode()])


def built_in(kustomize: Path, folder: Path) -> list[dict[str, Any]]:
    """The objects of Kubernetes' own kinds in both repositories."""
    found: list[dict[str, Any]] = []
    for name in ("core", "apps"):
        tree = Tree.of(folder / name)
        # A base that no overlay takes in is deployed nowhere.
        wanted = [[each] for each in tree.roots if not each.endswith("/base")]
        built = build_many(kustomize, folder / name, wanted)
        assert not built.failures
        objects = [each for items in built.objects.values() for each in items]
        objects += [each for _, each in tree.plain()]
        found += [dict(each) for each in objects]
    return [each for each in found if is_built_in(str(each.get("apiVersion")), each["kind"])]


def dry_run(kube: Kube, item: dict[str, Any]) -> str:
    """Why the API server refuses an object; "" where it takes it."""
    item = {**item, "metadata": {**item["metadata"]}}
    if "namespace" in item["metadata"] or item["kind"] not in CLUSTER_WIDE:
        item["metadata"]["namespace"] = "app"
    try:
        kube.apply(item, dry_run=True)
    except KubeError as error:
        return error.message
    return ""


CLUSTER_WIDE = (
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "IngressClass",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@with_examples(SOAKED)
def test_nothing_is_wrong_with_many(
    toolbox: Toolbox, given_topology: tuple[Topology, bytes]
) -> None:
    topology, text = given_topology
    found = check_rendered(toolbox.path("kustomize"), rendered(topology, text))
    assert not found, f"{found}\n{text.decode()}"
