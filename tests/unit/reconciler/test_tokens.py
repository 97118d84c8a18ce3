"""Tokens that renew themselves behind a connection."""

from __future__ import annotations

import pytest

from k8s_ucp.kube import Unreachable
from k8s_ucp.reconciler.tokens import Renewing, Token


class Source:
    """Hands out numbered tokens that live for 900 seconds."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.taken = 0
        self.away = False
        self.token = Renewing(self.take, "demo-stage", lambda: self.now)

    def take(self) -> Token:
        if self.away:
            raise Unreachable("nobody there")
        self.taken += 1
        return Token(f"token-{self.taken}", self.now, self.now + 900)


def test_one_is_taken_when_it_is_needed_and_kept() -> None:
    source = Source()
    assert source.taken == 0
    assert [source.token() for _ in range(3)] == ["token-1"] * 3


def test_it_is_renewed_when_due() -> None:
    source = Source()
    source.token()
    source.now += 560
    assert source.token() == "token-1"
    source.now += 50
    assert source.token() == "token-2"


def test_one_that_was_turned_down_is_never_used_again() -> None:
    source = Source()
    old = source.token()
    assert source.token(rejected=old) == "token-2"
    assert source.token(rejected=old) == "token-2", "another thread had the same answer"
    source.away = True
    with pytest.raises(Unreachable):
        source.token(rejected="token-2")


def test_while_it_lives_a_failed_renewal_harms_nobody() -> None:
    source = Source()
    source.token()
    source.away = True
    source.now += 700
    assert source.token() == "token-1"
    source.now += 250
    with pytest.raises(Unreachable):
        source.token()
    source.away = False
    assert source.token() == "token-2"


def test_its_text_is_not_shown() -> None:
    assert "secret" not in repr(Token("secret", 0, 1))
