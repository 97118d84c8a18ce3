"""`clouds` of the topology: simulated clouds, and what an embedded core can start with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.values.clouds import clouds, clouds_with_accounts
from k8s_ucp.topology import Topology, default, parse
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.topology.placement import is_simulated
from k8s_ucp.topology.rules.combinations import find_unstartable
from k8s_ucp.topology.text import topology_text

TEXT = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  core: {provider: CORE}
  clouds: CLOUDS
  environments: [{name: stage, cluster: {provider: eks}}]
  databases: [{name: orders, provider: aws}]
"""


def topology(clouds: str, core: str = "embedded") -> Topology:
    return parse(TEXT.replace("CLOUDS", clouds).replace("CORE", core), Path("ucp.yaml"))


def test_an_embedded_core_can_start_clusters_of_a_simulated_cloud() -> None:
    simulated = topology("{aws: {simulated: true}}")
    assert not list(find_unstartable(simulated))
    assert clouds(simulated) == ["aws"]
    assert not clouds_with_accounts(simulated)
    assert is_simulated(simulated, "eks")
    assert not is_simulated(simulated, "gke")


def test_without_a_simulated_cloud_the_refusal_suggests_one() -> None:
    real = topology("{}")
    messages = [each.message for each in find_unstartable(real)]
    assert len(messages) == 2
    assert all("clouds: {aws: {simulated: true}}" in each for each in messages)
    assert clouds_with_accounts(real) == ["aws"]
    assert not is_simulated(real, "eks")


@pytest.mark.parametrize(
    ("clouds", "core", "words"),
    [
        ("{gcp: {simulated: true}}", "embedded", "unknown key 'gcp' in spec.clouds"),
        ("{aws: {simulate: true}}", "embedded", "did you mean 'simulated'?"),
        ("{aws: true}", "embedded", "spec.clouds.aws must be a mapping"),
        ("{aws: {simulated: true}}", "kind", "a simulated aws is not supported with a kind core"),
    ],
)
def test_invalid_clouds_are_refused_with_their_line(clouds: str, core: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        topology(clouds, core)
    assert words in caught.value.message
    assert "ucp.yaml:6: " in caught.value.message


def test_a_new_file_declares_the_simulated_cloud() -> None:
    chosen = default(clouds=Clouds.model_validate({"aws": {"simulated": True}}))
    assert parse(topology_text(chosen), Path("ucp.yaml")) == chosen


LONG = f"{'d' * 20}-{'e' * 30}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("eks", "eks", f"'{LONG}' has 51 characters, but eks allows 50"),
        ("eks", "aks", f"'{LONG}' has 51 characters, but aks allows 34"),
        ("orders", "o" * 20, "has 72 characters, but aws allows 63 for a database"),
    ],
)
def test_names_that_a_cloud_would_reject_are_refused(old: str, new: str, said: str) -> None:
    """The names of roles, of the nodes' resource group and of databases contain them."""
    names = {"name: demo": f"name: {'d' * 20}", "name: stage": f"name: {'e' * 30}", old: new}
    text = TEXT.replace("clouds: CLOUDS", "clouds: {}").replace("CORE", "kind")
    for each, other in names.items():
        text = text.replace(each, other)
    with pytest.raises(UsageError) as refused:
        parse(text, Path("ucp.yaml"))
    assert said in refused.value.message
