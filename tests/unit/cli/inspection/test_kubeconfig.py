"""Merging a cluster's kubeconfig into the user's."""

from __future__ import annotations

from k8s_ucp.cli.inspection.kubeconfig import renamed
from k8s_ucp.clusters.user_contexts import merged

CONFIG = {
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "y", "user": {"token": "t"}}],
    "contexts": [{"name": "z", "context": {"cluster": "x", "user": "y"}}],
}


def test_merging_a_kubeconfig_twice_changes_nothing() -> None:
    base = {"clusters": [{"name": "mine"}], "contexts": None, "extensions": [1]}
    once = merged(base, renamed(CONFIG, "demo-core"))
    assert merged(once, renamed(CONFIG, "demo-core")) == once
    assert [each["name"] for each in once["clusters"]] == ["mine", "demo-core"]
    assert once["contexts"] == [
        {"name": "demo-core", "context": {"cluster": "demo-core", "user": "demo-core"}}
    ]
    assert once["current-context"] == "demo-core"
    assert once["extensions"] == [1]
