"""A reconciler that can't work says so, and its supervisor restarts it."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest

from k8s_ucp.reconciler.manager import Manager
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import PASSWORDS, Settings

CORE = {
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "t"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


def test_work_that_can_not_begin_makes_the_process_unhealthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig, log = tmp_path / "core", io.StringIO()
    kubeconfig.write_text(json.dumps(CORE))
    settings = Settings(
        kubeconfig, "here", "demo", limited=False, controllers=frozenset({PASSWORDS})
    )
    manager = Manager(settings, {}, log=Log(log))
    monkeypatch.setattr(manager, "watches", list)

    def start() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(manager._workers[PASSWORDS], "start", start)
    assert manager.unhealthy() == []
    manager.start()
    until = time.monotonic() + 60
    while not manager.unhealthy() and time.monotonic() < until:
        time.sleep(0.01)
    assert manager.unhealthy() == ["work did not begin"]
    assert "can't start new thread" in log.getvalue()
    manager.stop()
    assert manager.unhealthy() == []
