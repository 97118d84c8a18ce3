"""A new provider takes one file and one row of the table; everything else follows its traits."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.clusters import local
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.check.files import find_core_faults
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.plans import start
from k8s_ucp.preflight.machine import check_clusters
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.required import needed_tools
from k8s_ucp.topology import Topology, default
from k8s_ucp.topology import parse as parsed
from k8s_ucp.topology.parts import CoreCluster
from k8s_ucp.topology.schema import json_schema
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace
from tests.fifth_provider import ROW, PlaygroundProvider
from tests.unit.gitops.topologies import FACTS

TEXT = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  core: {provider: playground}
  environments:
    - {name: stage, cluster: {provider: playground}}
    - {name: prod, cluster: {provider: embedded}, promotesFrom: stage}
"""


def parse(text: str) -> Topology:
    return parsed(text, Path("ucp.yaml"))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, ROW.name, ROW)


@pytest.mark.parametrize("name", [each for each, info in PROVIDERS.items() if info.factory])
def test_each_row_makes_a_provider_with_the_same_traits(name: str, tmp_path: Path) -> None:
    made = local.make(name, Workspace.at(tmp_path), default(), None)
    assert made.info == PROVIDERS[name]


def test_the_new_provider_is_valid_in_the_topology_and_its_schema() -> None:
    spec = parse(TEXT).spec
    assert spec.core.provider == spec.environments[0].cluster.provider == "playground"
    definitions = json_schema()["$defs"]
    for part in ("CoreCluster", "AppCluster"):
        assert "playground" in definitions[part]["properties"]["provider"]["enum"]
    with pytest.raises(UsageError, match=r"unknown value 'playgrond': did you mean 'playground'"):
        parse(TEXT.replace("playground", "playgrond"))


def test_a_provider_without_a_row_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PROVIDERS, ROW.name)
    with pytest.raises(UsageError, match=r"unknown value 'playground': allowed: embedded, kind"):
        parse(TEXT)


def test_validation_tools_and_start_plan_follow_the_traits_of_the_provider() -> None:
    with pytest.raises(UsageError, match="'region' is valid for provider gke or eks"):
        parse(TEXT.replace("{provider: playground}", "{provider: playground, region: r}", 1))
    with pytest.raises(UsageError, match="a playground environment is not supported with a kind"):
        parse(TEXT.replace("core: {provider: playground}", "core: {provider: kind}"))
    topology = parse(TEXT)
    assert needed_tools(topology) == needed_tools(default())
    assert [each.step.id for each in start(topology).tasks] == [
        each.step.id for each in start(default()).tasks
    ]


def test_a_new_topology_file_describes_the_provider() -> None:
    topology = default(core=CoreCluster(provider="playground"))
    assert "provider: playground  # control planes that a stop deletes" in topology_text(topology)


def test_its_clusters_are_rendered_and_pass_the_check() -> None:
    files = render(parse(TEXT), FACTS).core
    base = files["clusters/base/playground/local-cluster.yaml"].decode()
    assert "provider: playground" in base
    assert "base/playground" in files["clusters/overlays/stage/kustomization.yaml"].decode()
    kinds = files["platform/reconciler/crds.yaml"].decode()
    assert "enum: [embedded, kind, existing, playground]" in kinds
    assert list(find_core_faults(Tree(files), None)) == []


def test_clusters_of_the_new_provider_are_requested_and_checked(tmp_path: Path) -> None:
    topology, workspace = parse(TEXT), Workspace.at(tmp_path)
    requests = local.environment_requests(topology)
    assert [each.name for each in requests["playground"]] == ["demo-stage"]
    context = StartContext(workspace=workspace, topology=topology)
    assert isinstance(context.provider, PlaygroundProvider)
    assert set(context.providers) == {"playground", "embedded"}
    check_clusters(context)
    assert set(local.make_local_providers(workspace, topology, None)) >= {"playground", "embedded"}


def test_clusters_of_a_provider_are_found_after_the_topology_dropped_it(tmp_path: Path) -> None:
    topology, workspace = default(), Workspace.at(tmp_path)
    assert "playground" not in local.used_providers(workspace, topology, None)
    (workspace.state(topology.name).root / "playground").mkdir(parents=True)
    assert "playground" in local.used_providers(workspace, topology, None)
