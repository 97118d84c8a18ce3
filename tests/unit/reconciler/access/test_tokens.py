"""Tokens of app clusters that are renewed automatically."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from k8s_ucp.kube import Kube, Unreachable
from k8s_ucp.reconciler.access import tokens
from k8s_ucp.reconciler.access.tokens import Renewing, Token
from k8s_ucp.timestamps import stamp


class Source:
    """Issues numbered tokens with a lifetime of 900 seconds."""

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


def test_a_token_is_requested_on_first_use_and_reused() -> None:
    source = Source()
    assert source.taken == 0
    assert [source.token() for _ in range(3)] == ["token-1"] * 3


def test_a_token_is_renewed_when_due() -> None:
    source = Source()
    source.token()
    source.now += 560
    assert source.token() == "token-1"
    source.now += 50
    assert source.token() == "token-2"


def test_a_rejected_token_is_never_used_again() -> None:
    source = Source()
    old = source.token()
    assert source.token(rejected=old) == "token-2"
    assert source.token(rejected=old) == "token-2", "another thread had the same answer"
    source.away = True
    with pytest.raises(Unreachable):
        source.token(rejected="token-2")


def test_a_failed_renewal_is_harmless_while_the_token_is_valid() -> None:
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


def test_failed_renewals_are_retried_with_backoff() -> None:
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


def test_an_expired_token_is_renewed_immediately() -> None:
    source = Source()
    source.token()
    source.away = True
    source.now += 899
    assert source.token() == "token-1"
    source.now += 2
    source.away = False
    assert source.token() == "token-2"


def test_the_repr_of_a_token_omits_its_text() -> None:
    assert "secret" not in repr(Token("secret", 0, 1))


NOW = 1_900_000_000.0
HOUR = 3600.0


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{body}.signature"


class Granting(Kube):
    """An app cluster that issues one fixed token."""

    def __init__(self, text: str, expires: str) -> None:
        self.answer = (text, expires)

    def request_token(self, *_: Any, **__: Any) -> tuple[str, str]:
        return self.answer


def granted(text: str, expires: str) -> Token:
    kube = Granting(text, expires)
    return tokens.request(kube, "a", "b", lifetime=600, clock=lambda: NOW)


@pytest.mark.parametrize("ahead", [0.0, 300.0, 600.0, HOUR, 1e6, -HOUR])
def test_clock_skew_does_not_make_a_new_token_due_immediately(ahead: float) -> None:
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
def test_a_token_has_a_minimum_lifetime_whatever_the_server_reports(
    claims: dict[str, Any], expires: str
) -> None:
    token = granted(jwt(**claims), expires)
    assert token.renew_at("demo-stage") >= NOW + 30
    assert stamp(token.expires_at)


def test_an_opaque_token_has_the_lifetime_that_the_server_reports() -> None:
    assert granted("opaque", stamp(NOW + 900)).expires_at == NOW + 900
