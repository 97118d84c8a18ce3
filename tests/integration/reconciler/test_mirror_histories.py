"""The random histories of the unit test, against a real API server."""

from __future__ import annotations

import os

import pytest

from k8s_ucp.kube import Kube
from tests.evidence import write
from tests.integration.reconciler.conftest import Planes
from tests.unit.reconciler.mirror_model import run_history

pytestmark = pytest.mark.engines


def histories(kube: Kube, count: int, steps: int) -> None:
    for seed in range(count):
        namespaces = (f"h{seed}-x", f"h{seed}-y")
        for name in namespaces:
            item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            kube.apply(item, manager="test")
        run_history(seed, kube, namespaces, steps)
        for name in namespaces:
            kube.request("DELETE", f"/api/v1/namespaces/{name}")


def test_some_random_histories_hurt_nobody(planes: Planes) -> None:
    histories(planes.apps["demo-stage"], 10, 30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_random_histories_hurt_nobody(planes: Planes) -> None:
    count = int(os.environ.get("SOAK_HISTORIES", "1000"))
    histories(planes.apps["demo-stage"], count, 40)
    if count >= 1000:
        text = (
            f"{count} random histories of 40 steps each (sources, Syncers and objects of others "
            "written, changed and deleted; copies meddled with; restarts with nothing in memory; "
            "views that lag behind), planned, decided and written by the real code on a real API "
            "server, the core in memory. Not one object of others changed or gone at any step; at "
            "the end every copy that should be there was there, and no other."
        )
        write(
            "mirrors-histories",
            "Mirrors against a model",
            {"What was found": text},
            command="make soak",
        )
