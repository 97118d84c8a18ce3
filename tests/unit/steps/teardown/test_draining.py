"""A teardown stops automated syncs on the core, also those that retry forever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.kube import Kind, Object
from k8s_ucp.steps.teardown import draining
from k8s_ucp.steps.teardown.draining import pause_automation
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


def application(name: str, phase: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "1"},
        "spec": {"destination": {"name": "in-cluster"}, "syncPolicy": {"automated": {}}},
        "operation": {"sync": {}, "retry": {"limit": -1}},
        "status": {"operationState": {"phase": phase, "retryCount": 7}},
    }


class Core:
    """A fake Argo CD that terminates syncs immediately."""

    def __init__(self, *items: Object) -> None:
        self.items = {each["metadata"]["name"]: each for each in items}

    def patch(self, _: Kind, name: str, __: str, change: Any) -> None:
        item = self.items[name]
        if "spec" in change:
            item["spec"]["syncPolicy"] |= change["spec"]["syncPolicy"]
        if "status" in change:
            assert change["status"]["operationState"] == {"phase": "Terminating"}
            item.pop("operation")

    def delete(self, _: Kind, name: str, *__: Any, **___: Any) -> None:
        del self.items[name]


@pytest.fixture
def context(tmp_path: Path) -> StartContext:
    return StartContext(workspace=Workspace.at(tmp_path), topology=default())


def test_a_sync_that_retries_forever_is_terminated(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core(application("root", "Running"), application("clusters", "Running"))
    vars(context)["kube"] = core
    monkeypatch.setattr(StartContext, "applications", lambda _: [*core.items.values()])
    monkeypatch.setattr(draining, "SYNC_SECONDS", 2.0)
    pause_automation.run(context, lambda _: None)
    assert [*core.items] == ["clusters"]
    assert core.items["clusters"]["spec"]["syncPolicy"] == {"automated": None}
    assert "operation" not in core.items["clusters"]


def test_a_running_phase_without_an_operation_is_not_a_sync(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that was stopped during a sync leaves this state."""
    left = application("clusters", "Running")
    del left["operation"]
    core = Core(left)
    vars(context)["kube"] = core
    monkeypatch.setattr(StartContext, "applications", lambda _: [*core.items.values()])
    monkeypatch.setattr(draining, "SYNC_SECONDS", 0.0)
    pause_automation.run(context, lambda _: None)
