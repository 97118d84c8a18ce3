"""Foreign objects are never changed or deleted; no copy is lost, duplicated or orphaned."""

from __future__ import annotations

from tests.unit.reconciler.fake_api import FakeApi
from tests.unit.reconciler.mirrors.mirror_model import run_history

SEQUENCES = 1000
STEPS = 40


def test_random_histories_keep_foreign_objects_and_converge() -> None:
    for seed in range(SEQUENCES):
        run_history(seed, FakeApi(), ("x", "y"), STEPS)
