"""Secrets and ConfigMaps from mirrors."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.check.objects.mirrored import mirrored_in


def test_mirrored_in_lists_the_keys_that_syncers_provide() -> None:
    entry = {
        "sourceName": "quotes-stage-connection",
        "sourceNamespace": "ucp-clusters",
        "kinds": "secret",
        "targetCluster": "demo-stage",
        "targetNamespace": "quote",
        "targetName": "database",
    }
    syncer = {"kind": "Syncer", "metadata": {"name": "a"}, "spec": {"data": [entry]}}
    found = mirrored_in([syncer], "quote", "stage")
    assert found is not None
    assert "password" in found.keys["Secret", "database"]
    for app, environment in (("quote", "prod"), ("echo", "stage")):
        other = mirrored_in([syncer], app, environment)
        assert other is not None and not other.keys
    by_labels = {**entry, "sourceName": None}
    assert mirrored_in([{**syncer, "spec": {"data": [by_labels]}}], "quote", "stage") is None


def _in(*requirement: Any) -> dict[str, Any]:
    key, operator, *values = requirement
    return {
        "targetSelector": {
            "matchExpressions": [{"key": key, "operator": operator, "values": values}]
        }
    }


@pytest.mark.parametrize(
    ("target", "provided"),
    [
        ({"targetCluster": "demo-stage"}, True),
        ({"targetCluster": "demo-eu-stage"}, False),
        ({"targetSelector": {}}, True),
        ({"targetSelector": {"matchLabels": {"k8s-ucp.io/environment": "prod"}}}, False),
        ({"targetSelector": {"matchLabels": {"k8s-ucp.io/region": "eu"}}}, True),
        (_in("k8s-ucp.io/environment", "In", "stage", "prod"), True),
        (_in("k8s-ucp.io/environment", "In", "prod"), False),
        (_in("k8s-ucp.io/environment", "NotIn", "stage"), False),
        (_in("k8s-ucp.io/region", "In", "eu"), True),
    ],
)
def test_a_mirror_to_other_environments_provides_nothing(target: Any, provided: bool) -> None:
    entry = {"sourceName": "quotes", "targetNamespace": "quote", **target}
    labels = {"k8s-ucp.io/topology": "demo"}
    syncer = {"kind": "Syncer", "metadata": {"labels": labels}, "spec": {"data": [entry]}}
    found = mirrored_in([syncer], "quote", "stage")
    assert found is not None
    assert (("Secret", "quotes") in found.keys) is provided
