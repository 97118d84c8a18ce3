"""Every valid topology can be built and checked, and the API server accepts its objects.

Kinds of clouds, which are not served here, are compared with a table of their providers' fields.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from k8s_ucp.gitops.check.repositories import check_rendered
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.build_many import build_many
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import Rendered, render
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.providers import PROVIDERS, core_providers
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.topology.rules.combinations import environments_of, git_of, rendered_only
from tests import provider_fields
from tests.control_planes import namespace
from tests.integration.gitops.promotion.soak import SoakRecord
from tests.random_topologies import topologies
from tests.remembered_builds import remembered_builds
from tests.unit.gitops.topologies import FACTS

EXAMPLES, SOAKED, PIECES = 8, 400, 10
"""Topologies in `make test`, and in `make soak`, which runs them in pieces."""
SEED = 20261121
RECORD = SoakRecord(
    "topologies",
    "Repositories of topologies at random",
    (
        *("src/k8s_ucp/gitops/render", "src/k8s_ucp/gitops/manifests"),
        *(f"src/k8s_ucp/gitops/check/{name}" for name in ("files.py", "objects", "tree.py")),
        *("templates", "tests/random_topologies.py"),
        "tests/integration/gitops/render/test_every_topology.py",
    ),
)
CLOUD_FIELDS = json.loads(provider_fields.TABLE.read_text("utf-8"))["kinds"]


@pytest.fixture(scope="module", autouse=True)
def built_once() -> Iterator[None]:
    """Both tests build the same repositories."""
    with remembered_builds():
        yield


def rendered(topology: Topology, text: bytes) -> Rendered:
    git = topology.spec.git
    inputs = replace(
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
    return render(topology, inputs)


def with_examples(count: int, start: int = SEED) -> Callable[[Any], Any]:
    """A fixed set of that many topologies; a failing one isn't shrunk, which takes too long."""

    def decorate(test: Any) -> Any:
        chosen = settings(
            deadline=None,
            max_examples=count,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            database=None,
        )
        return seed(start)(chosen(given(topologies())(test)))

    return decorate


@with_examples(EXAMPLES)
def test_check_finds_no_problem(toolbox: Toolbox, given_topology: tuple[Topology, bytes]) -> None:
    topology, text = given_topology
    found = check_rendered(toolbox.path("kustomize"), rendered(topology, text)).findings
    assert not found, f"{found}\n{text.decode()}"


@pytest.fixture(scope="module")
def kube(serving_core: Kube) -> Kube:
    serving_core.apply(namespace("app"))
    return serving_core


@pytest.mark.engines
@with_examples(EXAMPLES)
def test_api_server_accepts_every_object(
    toolbox: Toolbox,
    kube: Kube,
    tmp_path_factory: pytest.TempPathFactory,
    given_topology: tuple[Topology, bytes],
) -> None:
    topology, text = given_topology
    folder = tmp_path_factory.mktemp("tree")
    render_to(folder, rendered(topology, text))
    found = objects(toolbox.path("kustomize"), folder)
    refused = [
        f"{item['kind']} {item['metadata']['name']}: {error}"
        for item in found
        if is_served(item) and (error := dry_run(kube, item))
    ]
    refused += unknown_fields(found)
    assert not refused, "\n".join([*refused, text.decode()])


def objects(kustomize: Path, folder: Path) -> list[dict[str, Any]]:
    """The objects in both repositories."""
    found: list[dict[str, Any]] = []
    for name in ("core", "apps"):
        tree = Tree.of(folder / name)
        # A base that no overlay uses is not deployed.
        wanted = [[each] for each in tree.roots if not each.endswith("/base")]
        built = build_many(kustomize, folder / name, wanted)
        assert not built.failures
        found += [dict(each) for items in built.objects.values() for each in items]
        found += [dict(each) for _, each in tree.plain()]
    return found


def is_served(item: dict[str, Any]) -> bool:
    """Return whether it is applied to a cluster and is not a cloud's kind."""
    return item["kind"] not in FILES and not provider_fields.is_ours_to_check(item)


def unknown_fields(found: list[dict[str, Any]]) -> list[str]:
    """Unknown fields of clouds' kinds, including those inside Compositions."""
    return [
        each
        for item in provider_fields.bases(found)
        for each in provider_fields.problems(item, CLOUD_FIELDS)
    ]


def dry_run(kube: Kube, item: dict[str, Any]) -> str:
    """Error of the API server for an object; empty if it is accepted."""
    item = {**item, "metadata": {**item["metadata"]}}
    if "namespace" in item["metadata"] or item["kind"] not in CLUSTER_WIDE:
        item["metadata"]["namespace"] = "app"
    try:
        kube.apply(item, dry_run=True)
    except KubeError as error:
        return error.message
    return ""


FILES = ("Topology", "Environments")
"""Kinds that only ucp reads."""
CLUSTER_WIDE = (
    "Namespace",
    "Composition",
    "CompositeResourceDefinition",
    "DeploymentRuntimeConfig",
    "Function",
    "Provider",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "IngressClass",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


class Piece:
    """Coverage of the topologies in one piece of the soak."""

    def __init__(self, kustomize: Path, kube: Kube, folder: Path) -> None:
        self.kustomize, self.kube, self.folder = kustomize, kube, folder
        self.counts: Counter[str] = Counter()

    def look_at(self, topology: Topology, text: bytes) -> None:
        """Check everything that must be true for a topology."""
        found = rendered(topology, text)
        assert found == rendered(topology, text), f"other bytes\n{text.decode()}"
        # A git repository on this machine with a pipeline is a choice, of which the check warns.
        wrong = [
            each
            for each in check_rendered(self.kustomize, found).findings
            if each.rule != "pipeline-local-repository"
        ]
        assert not wrong, f"{wrong}\n{text.decode()}"
        self.counts["topologies"] += 1
        self.counts["files_with_the_same_bytes_twice"] += len(found.core) + len(found.apps)
        folder = self.folder / str(self.counts["topologies"])
        render_to(folder, found)
        for name in ("core", "apps"):
            tree = Tree.of(folder / name)
            wanted = {*tree.roots, *(each for each in tree.kustomizations if "/overlays/" in each)}
            made = build_many(self.kustomize, folder / name, [[each] for each in sorted(wanted)])
            assert not made.failures, f"{made.failures}\n{text.decode()}"
            self.counts["roots_and_overlays_built"] += len(wanted)
        built = objects(self.kustomize, folder)
        for item in filter(is_served, built):
            refused = dry_run(self.kube, item)
            assert not refused, f"{item['kind']}: {refused}\n{text.decode()}"
            self.counts["objects_taken_by_the_API_server"] += 1
        assert not unknown_fields(built), f"{unknown_fields(built)}\n{text.decode()}"
        self.counts["managed_resources_in_their_providers'_words"] += len(
            list(provider_fields.bases(built))
        )
        shutil.rmtree(folder)


@pytest.mark.soak
@pytest.mark.engines
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(1, PIECES + 1))
def test_many_topologies_have_no_problem(
    number: int, toolbox: Toolbox, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = f"{number:02} of {PIECES}"
    if RECORD.has(case):
        pytest.skip("recorded already, for this code")
    piece = Piece(toolbox.path("kustomize"), request.getfixturevalue("kube"), tmp_path)

    @with_examples(SOAKED // PIECES, SEED + number)
    def look(given_topology: tuple[Topology, bytes]) -> None:
        piece.look_at(*given_topology)

    look()
    RECORD.add(case, piece.counts)


@pytest.mark.soak
def test_soaked_topologies_cover_every_combination() -> None:
    """They contain every pair of a core with a git provider and with an environment."""
    pairs: set[tuple[str, str]] = set()

    def note(given_topology: tuple[Topology, bytes]) -> None:
        spec = given_topology[0].spec
        pairs.add((spec.core.provider, spec.git.provider))
        pairs.update((spec.core.provider, each.cluster.provider) for each in spec.environments)
        pairs.add(("ingress", str(spec.addons.ingress)))

    for number in range(1, PIECES + 1):
        with_examples(SOAKED // PIECES, SEED + number)(note)()
    allowed = {
        (name, each)
        for name in core_providers()
        for core in (PROVIDERS[name],)
        for each in (*git_of(core), *environments_of(core), *rendered_only(core))
    }
    allowed |= {("ingress", each) for each in ("traefik", "nginx", "gateway", "none")}
    assert pairs == allowed
