"""For how long an app cluster has not responded."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

from k8s_ucp.reconciler.registration.app_access import AppAccess

NOBODY = {"server": "https://127.0.0.1:1", "config": json.dumps({"bearerToken": "t"})}
SECRET = {
    "metadata": {"name": "demo-stage", "resourceVersion": "1"},
    "data": {key: base64.b64encode(value.encode()).decode() for key, value in NOBODY.items()},
}


def test_a_jump_of_the_clock_is_no_silence_of_the_cluster() -> None:
    """After five minutes of silence it would be deregistered without a drain."""
    now = [1_000_000.0]
    runtime: Any = SimpleNamespace(
        clients=None,
        settings=SimpleNamespace(topology="demo"),
        metrics=None,
        clock=lambda: now[0],
    )
    access = AppAccess(runtime)
    assert access.silent_for("key", SECRET, ("default",)) < 60
    now[0] += 8 * 3600  # The machine was suspended.
    assert 0 < access.silent_for("key", SECRET, ("default",)) < 60
