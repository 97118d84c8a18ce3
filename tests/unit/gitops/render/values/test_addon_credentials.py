"""Credentials that add-ons require, and the documented mirrors that provide them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.steps.preparation.publish_repositories import warnings
from k8s_ucp.topology import Topology
from tests.unit.gitops.topologies import FACTS, on_clouds

DOCS = Path(__file__).parents[5] / "docs" / "platform.md"
BOTH = {"external-dns": True, "velero": True}
GCP = {"name": "stage", "cluster": {"provider": "gke"}}


def on_stage(**spec: Any) -> Topology:
    return on_clouds(environments=["stage"], databases=[], addons=BOTH, **spec)


def documented() -> list[Any]:
    blocks = re.findall(r"```yaml\n(mirrors:.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    found: list[Any] = YAML(typ="safe").load(blocks[0])["mirrors"]
    return found


def test_missing_credentials_are_reported() -> None:
    dns, velero = warnings(on_stage())
    assert "external-dns on stage needs the Secret gcp-creds in the namespace" in dns
    assert "velero on stage needs the Secret velero-credentials" in velero


def test_the_documented_mirrors_provide_the_credentials() -> None:
    topology = on_stage(mirrors=documented())
    assert warnings(topology) == []
    core = render(topology, FACTS).core
    load = YAML(typ="safe").load
    values = load(core["platform/velero/values/gke.yaml"].decode())
    assert values["credentials"]["existingSecret"] == "velero-credentials"
    entry = load(core["mirrors/backup-credential.yaml"].decode())["spec"]["data"][0]
    # Velero reads the key `cloud` of that Secret.
    assert (entry["targetName"], entry["keys"]) == ("velero-credentials", {"cloud": "creds"})
    values = load(core["platform/external-dns/values/gke.yaml"].decode())
    entry = load(core["mirrors/dns-credential.yaml"].decode())["spec"]["data"][0]
    assert entry["targetName"] == values["extraVolumes"][0]["secret"]["secretName"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"namespace": "a", "name": "gcp-creds", "kind": "configmap"}},
        {"targets": {"namespace": "other"}},
        {"targets": {"namespace": "external-dns", "name": "other"}},
        {"targets": {"namespace": "external-dns", "environments": ["prod"]}},
    ],
)
def test_a_mirror_of_another_object_does_not_provide_the_credentials(
    change: dict[str, Any],
) -> None:
    mirror = {
        "name": "m",
        "source": {"namespace": "a", "name": "gcp-creds"},
        "targets": {"namespace": "external-dns"},
    }
    assert len(warnings(on_stage(mirrors=[mirror]))) == 1
    assert len(warnings(on_stage(mirrors=[{**mirror, **change}]))) == 2


def test_without_clouds_no_credentials_are_required() -> None:
    topology = on_clouds(environments=["dev"], databases=[], addons=BOTH, credentials={})
    assert warnings(topology) == []
