"""Questions: when they are asked, and parsing of answers typed at prompts."""

from __future__ import annotations

import contextlib

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.questions import split_names
from k8s_ucp.errors import UsageError


@pytest.mark.parametrize(
    ("text", "names"),
    [("stage, prod", ["stage", "prod"]), (" a  b,,c ", ["a", "b", "c"]), ("", []), (" , ", [])],
)
def test_names_are_split_at_commas_and_spaces(text: str, names: list[str]) -> None:
    assert split_names(text) == names


@pytest.mark.parametrize(
    ("asked", "needed", "answer", "refusal"),
    [
        (True, True, True, ""),
        (True, False, False, "nothing was changed"),
        (False, True, True, "the confirmation needs a terminal"),
        (False, False, False, ""),
    ],
    ids=["agreed", "declined", "nobody to ask", "nobody has to be asked"],
)
def test_consent_is_required_where_it_is_needed_and_asked_where_it_can_be(
    monkeypatch: pytest.MonkeyPatch, asked: bool, needed: bool, answer: bool, refusal: str
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: asked)
    monkeypatch.setattr(questions, "confirm", lambda *_, default: answer)
    expected = pytest.raises(UsageError, match=refusal) if refusal else contextlib.nullcontext()
    with expected:
        questions.require_consent(
            "Change it?", "nothing was changed", next="ucp --yes", needed=needed
        )
