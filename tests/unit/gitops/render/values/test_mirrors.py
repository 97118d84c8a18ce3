"""Syncers in the core repository: mirrors of the topology, and connections of apps to databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.reconciler.mirrors.spec import parse as parse_syncer
from k8s_ucp.topology import parse
from tests.unit.gitops.topologies import FACTS

TEXT = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - {name: stage}
    - {name: prod, promotesFrom: stage}
  apps:
    - {name: quote, image: example.org/quote, tag: "1", database: quotes}
  databases: [{name: quotes, provider: local}]
  mirrors:
    - name: login
      source: {namespace: ucp-clusters, name: login}
      targets: {namespace: web, environments: [prod], keys: {USER: user}}
"""


NOWHERE = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  apps: [{name: quote, image: example.org/quote, tag: "1", database: quotes}]
  databases: [{name: quotes, provider: local}]
"""


def syncers(text: str = TEXT) -> dict[str, dict[str, Any]]:
    files = render(parse(text, Path("ucp.yaml")), FACTS).core
    yaml = YAML(typ="safe", pure=True)
    return {
        path: yaml.load(text.decode())
        for path, text in files.items()
        if path.startswith("mirrors/") and path.endswith(".yaml")
    }


def test_each_mirror_is_a_valid_syncer() -> None:
    found = syncers()
    assert sorted(found) == ["mirrors/login.yaml", "mirrors/quote-database.yaml"]
    for item in found.values():
        syncer = parse_syncer(item, frozenset({"ucp-clusters"}))
        assert syncer.mistakes == ()
        assert len(syncer.entries) == len(item["spec"]["data"])


def test_a_database_without_an_environment_is_not_mirrored() -> None:
    """A Syncer without entries is invalid: its CRD requires at least one."""
    assert syncers(NOWHERE) == {}


def test_an_app_gets_the_secret_of_its_database_in_each_environment() -> None:
    entries = syncers()["mirrors/quote-database.yaml"]["spec"]["data"]
    assert [
        (each["sourceName"], each["targetCluster"], each["targetNamespace"], each["targetName"])
        for each in entries
    ] == [
        ("quotes-stage-connection", "demo-stage", "quote", "database"),
        ("quotes-prod-connection", "demo-prod", "quote", "database"),
    ]
