"""`ucp stop` asks only where its question is seen, and requires an answer if data is deleted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.lifecycle import stop
from k8s_ucp.errors import UsageError

CONTEXT: Any = SimpleNamespace(topology=SimpleNamespace(name="demo"))


@pytest.fixture
def redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    """stdin is a terminal, but stderr is a file: `ucp stop 2> log`."""

    def ask(question: str, **_: object) -> bool:
        raise AssertionError(f"nobody sees the question: {question}")

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: False))
    monkeypatch.setattr(questions, "confirm", ask)


@pytest.mark.usefixtures("redirected")
def test_a_stop_that_keeps_all_data_does_not_ask_where_nobody_sees_the_question() -> None:
    stop._confirm(CONTEXT, loses=False)


@pytest.mark.usefixtures("redirected")
def test_a_stop_that_deletes_data_is_refused_where_nobody_sees_the_question() -> None:
    with pytest.raises(UsageError, match="needs a terminal"):
        stop._confirm(CONTEXT, loses=True)


def test_a_stop_that_is_not_confirmed_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: True)
    monkeypatch.setattr(questions, "confirm", lambda *_, default: False)
    with pytest.raises(UsageError, match="nothing was stopped"):
        stop._confirm(CONTEXT, loses=False)
