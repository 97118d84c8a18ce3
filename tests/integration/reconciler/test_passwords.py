"""A Secret that requests a password, on a real API server: it is generated once and kept."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SECRET
from tests.integration.reconciler.world import (
    CLUSTERS,
    Clusters,
    assert_no_secret_in_the_open,
    eventually,
)

pytestmark = pytest.mark.engines

ARGOCD = "argocd-controller"


def declared(port: str = "5432") -> dict[str, Any]:
    """The Secret from a repository, as Argo CD applies it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "quotes-stage-connection",
            "namespace": CLUSTERS,
            "labels": {"k8s-ucp.io/generate": "password"},
        },
        "stringData": {"port": port},
    }


def test_a_password_is_generated_once_and_survives_applies_by_argo_cd(world: Clusters) -> None:
    world.start()
    world.core.apply(declared(), manager=ARGOCD)
    # `ucp start` records this after restoring the backup; no password is generated before.
    world.core.apply(CONFIG_MAP.object(names.RESTORED, CLUSTERS, data={"passwords": "yes"}))

    def password() -> str:
        data = world.core.get(SECRET, "quotes-stage-connection", CLUSTERS).get("data") or {}
        return base64.b64decode(data.get("password", "")).decode()

    try:
        made = eventually(password, "a password")
        assert len(made) == 40
        world.core.apply(declared("5433"), manager=ARGOCD)
        world.stop()
        world.start()
        data = world.core.get(SECRET, "quotes-stage-connection", CLUSTERS)["data"]
        assert base64.b64decode(data["port"]) == b"5433"
        assert password() == made
        assert_no_secret_in_the_open(world)
    finally:
        world.core.delete(SECRET, "quotes-stage-connection", CLUSTERS)
        world.core.delete(CONFIG_MAP, names.RESTORED, CLUSTERS)
