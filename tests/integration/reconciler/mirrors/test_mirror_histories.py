"""The random histories of the unit test, on a real API server."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import pytest

from k8s_ucp.kube import CONFIG_MAP, SECRET, Kube
from tests.integration.gitops.promotion.soak import Cases, SoakRecord
from tests.integration.reconciler.conftest import Planes
from tests.unit.reconciler.mirrors.mirror_model import run_history

pytestmark = pytest.mark.engines

HISTORIES, STEPS = 1000, 40
CHUNK = 10
"""Histories that are recorded together: the most that an interrupted run loses."""
SIDE_BY_SIDE = 4


def told(cases: Cases) -> str:
    done = sum(int(each["histories"]) for each in cases.values())
    return (
        f"{done} of {HISTORIES} random histories of {STEPS} steps each (sources, Syncers and "
        "objects of others written, changed and deleted; copies meddled with; restarts with "
        "nothing in memory; views that lag behind), planned, decided and written by the real code "
        f"on a real API server, {SIDE_BY_SIDE} at a time, the core in memory. Not one object of "
        "others changed or gone at any step; at the end of each every copy that should be there "
        "was there, and no other."
    )


RECORD = SoakRecord(
    "mirrors-histories",
    "Mirrors against a model",
    (
        "src/k8s_ucp/reconciler",
        "src/k8s_ucp/kube",
        "tests/unit/reconciler/mirrors/mirror_model.py",
        "tests/unit/reconciler/fake_api.py",
    ),
    told=told,
)


def histories(config: dict[str, Any], seeds: Sequence[int], steps: int) -> int:
    """Run histories one after the other in two namespaces of their own; returns their number."""
    kube = Kube(config)
    namespaces = (f"h{steps}-{seeds[0]}-x", f"h{steps}-{seeds[0]}-y")
    try:
        for name in namespaces:
            item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            kube.apply(item, manager="test")
        for seed in seeds:
            run_history(seed, kube, namespaces, steps)
            for name in namespaces:
                kube.request("DELETE", SECRET.path(name))
                others = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
                kube.request("DELETE", CONFIG_MAP.path(name), query=others)
        for name in namespaces:
            kube.request("DELETE", f"/api/v1/namespaces/{name}")
    finally:
        kube.close()
    return len(seeds)


@pytest.mark.slow
def test_a_few_random_histories_match_the_model_and_change_nothing_foreign(planes: Planes) -> None:
    assert histories(planes.config("demo-stage"), range(10), 30) == 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_thousand_random_histories_match_the_model_and_change_nothing_foreign(
    planes: Planes,
) -> None:
    config = planes.config("demo-stage")
    chunks = {
        f"{first}-{first + CHUNK - 1}": range(first, first + CHUNK)
        for first in range(0, HISTORIES, CHUNK)
    }
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(SIDE_BY_SIDE, mp_context=context) as pool:
        work = {
            pool.submit(histories, config, seeds, STEPS): case
            for case, seeds in chunks.items()
            if not RECORD.has(case)
        }
        try:
            for each in as_completed(work):
                RECORD.add(work[each], {"histories": each.result()})
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
