"""Retries of steps while an API server does not respond."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.context import StartContext, persistent, start_context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.kube import Invalid, KubeError, Unreachable
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


@pytest.mark.parametrize(
    ("failures", "tries", "raised"),
    [
        ([], 1, None),
        ([Unreachable("no response within 10 s")] * 2, 3, None),
        ([Invalid("no such field")] * 2, 1, Invalid),
        ([Unreachable("gone")] * 9, 4, Unreachable),
    ],
)
def test_a_step_is_retried_while_the_api_server_does_not_respond(
    failures: list[KubeError],
    tries: int,
    raised: type[KubeError] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = StartContext(Workspace.at(Path("/nowhere")), demo())
    now, tried, told = [100.0], 0, list[str]()

    def pause(seconds: float) -> None:
        now[0] += 20 * seconds

    @persistent
    def step(_: StartContext, report: Report) -> None:
        nonlocal tried
        tried += 1
        if tried <= len(failures):
            raise failures[tried - 1]

    monkeypatch.setattr(start_context.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(context.cancel, "pause", pause)
    if raised:
        with pytest.raises(raised):
            step(context, told.append)
    else:
        step(context, told.append)
    assert tried == tries
    assert told == [each.message for each in failures[: tries - 1]]
