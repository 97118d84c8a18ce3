"""Secrets and ConfigMaps from mirrors."""

from __future__ import annotations

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
