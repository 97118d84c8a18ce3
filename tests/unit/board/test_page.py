"""The board's HTML page, and the actions that it sends."""

from __future__ import annotations

import re

import pytest

from k8s_ucp.board.actions import Action, Outcome, attempt, parse
from k8s_ucp.board.page import TYPES, asset, page
from k8s_ucp.errors import UcpError, UsageError


def test_the_page_escapes_the_values_it_is_given() -> None:
    text = page("<demo>", 'a"b', may_change=False).decode()
    assert "<title>&lt;demo&gt; - ucp board</title>" in text
    assert 'content="a&quot;b"' in text
    assert 'data-mode="read-only"' in text
    assert not re.findall(r"{\w+}", text)


def test_the_page_loads_no_external_and_no_inline_resources() -> None:
    text = page("demo", "x", may_change=True).decode()
    own = set(re.findall(r'(?:src|href)="([^"#]+)"', text))
    assert own == {"board.css", "board.js", "icon.svg"}
    assert " style=" not in text
    assert not re.search(r"\son\w+=", text)
    for name in TYPES:
        found = re.findall(r"https?://[^\"' ]+", asset(name).decode())
        assert set(found) <= {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in asset("board.js").decode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kind": "delete", "app": "a", "env": "b"}',
        b'{"kind": "rollback", "app": "../a", "env": "b"}',
        b'{"kind": "rollback", "app": "a"}',
        b'{"kind": "promote", "app": "a", "env": "b"}',
        b'{"kind": "promote", "app": "a", "env": "b", "images": {"i": "not a tag"}}',
        b'{"kind": "promote", "app": "a", "env": "b", "images": ["i"]}',
        b'{"kind": "rollback", "app": "a", "env": "b"}',
        b'{"kind": "hold", "app": "a", "env": "b", "seen": ["1"]}',
    ],
)
def test_an_invalid_action_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError):
        parse(body)


def test_a_ucp_error_becomes_a_failed_outcome() -> None:
    def run(action: Action) -> Outcome:
        raise UcpError(f"{action.app} is not there", next="look")

    found = attempt(run, b'{"kind": "rollback", "app": "a", "env": "b", "seen": {"a": "1"}}')
    assert found == Outcome(False, "a is not there\n  next: look")
