"""Tokens that renew themselves behind a connection."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from k8s_ucp.kube import Kube, Unreachable
from k8s_ucp.reconciler.access import tokens
from k8s_ucp.reconciler.access.tokens import Renewing, Token
from k8s_ucp.reconciler.runtime.clock import stamp


class Source:
    """Hands out numbered tokens that live for 900 seconds."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.taken = 0
        self.asked = 0
        self.away = False
        self.token = Renewing(self.take, "demo-stage", lambda: self.now)

    def take(self) -> Token:
        self.asked += 1
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


def test_renewals_that_fail_wait_longer_and_longer() -> None:
    source = Source()
    source.token()
    source.away = True
    source.now += 650
    for _ in range(2_000):
        assert source.token() == "token-1"
        source.now += 0.1
    assert source.asked <= 1 + 5 + 200 / 15, "each look asked again"
    source.away = False
    source.now += 30
    assert source.token() == "token-2"


def test_one_that_died_is_asked_for_at_once() -> None:
    source = Source()
    source.token()
    source.away = True
    source.now += 899
    assert source.token() == "token-1"
    source.now += 2
    source.away = False
    assert source.token() == "token-2"


def test_its_text_is_not_shown() -> None:
    assert "secret" not in repr(Token("secret", 0, 1))


NOW = 1_900_000_000.0
HOUR = 3600.0


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{body}.signature"


class Granting(Kube):
    """An app cluster whose clock is so many seconds away from ours."""

    def __init__(self, text: str, expires: str) -> None:
        self.answer = (text, expires)

    def request_token(self, *_: Any, **__: Any) -> tuple[str, str]:
        return self.answer


def granted(text: str, expires: str) -> Token:
    kube = Granting(text, expires)
    return tokens.request(kube, "a", "b", lifetime=600, clock=lambda: NOW)


@pytest.mark.parametrize("ahead", [0.0, 300.0, 600.0, HOUR, 1e6, -HOUR])
def test_a_clock_that_is_away_from_the_cluster_s_makes_no_token_due_at_once(ahead: float) -> None:
    theirs = NOW - ahead
    token = granted(jwt(iat=theirs, exp=theirs + 600), stamp(theirs + 600))
    assert token.expires_at == NOW + 600
    assert NOW + 300 < token.renew_at("demo-stage") < NOW + 600


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"iat": 5, "exp": 5},
        {"iat": 5, "exp": 1},
        {"iat": 0, "exp": 1e300},
        {"iat": "x", "exp": None},
        {"iat": NOW, "exp": NOW + 1},
    ],
)
@pytest.mark.parametrize("expires", ["", "words", stamp(NOW - HOUR), stamp(NOW + 1)])
def test_whatever_a_server_says_a_token_has_a_life(claims: dict[str, Any], expires: str) -> None:
    token = granted(jwt(**claims), expires)
    assert token.renew_at("demo-stage") >= NOW + 30
    assert stamp(token.expires_at)


def test_a_token_that_tells_nothing_lives_as_long_as_the_server_said() -> None:
    assert granted("opaque", stamp(NOW + 900)).expires_at == NOW + 900
