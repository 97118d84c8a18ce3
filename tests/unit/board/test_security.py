"""Access control of the board: hosts, origins, sessions and the content security policy."""

from __future__ import annotations

import pytest

from k8s_ucp.board.security import (
    BoardSession,
    Sessions,
    is_foreign,
    is_own_host,
    is_same,
    may_change,
    policy,
)

SESSION = BoardSession("cookie", "second")
OF_THE_PAGE = {
    "Host": "127.0.0.1:80",
    "Origin": "http://127.0.0.1:80",
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/json",
    "X-UCP-Board": "second",
}


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:80", True),
        ("localhost:80", True),
        ("LOCALHOST:80", True),
        ("127.0.0.1", False),
        ("127.0.0.1:81", False),
        ("localhost.evil.example:80", False),
        ("127.0.0.1:80, evil.example", False),
        ("", False),
    ],
)
def test_only_the_boards_own_host_and_port_are_accepted(host: str, own: bool) -> None:
    assert is_own_host({"Host": host}, 80) is own


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ({}, False),
        ({"Origin": "http://127.0.0.1:80"}, False),
        ({"Origin": "http://localhost:80"}, True),
        ({"Origin": "https://127.0.0.1:80"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": ""}, True),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Origin": "http://127.0.0.1:80", "Sec-Fetch-Site": "cross-site"}, True),
    ],
)
def test_requests_from_other_origins_are_foreign(headers: dict[str, str], foreign: bool) -> None:
    assert is_foreign({"Host": "127.0.0.1:80", **headers}) is foreign


def test_a_change_requires_all_headers_that_the_page_sends() -> None:
    assert may_change(OF_THE_PAGE, SESSION)
    assert may_change({**OF_THE_PAGE, "Content-Type": "application/json; charset=utf-8"}, SESSION)
    for name in ("Origin", "Content-Type", "X-UCP-Board"):
        lacking = {key: value for key, value in OF_THE_PAGE.items() if key != name}
        assert not may_change(lacking, SESSION)
    assert not may_change({**OF_THE_PAGE, "X-UCP-Board": "cookie"}, SESSION)


def test_is_same_compares_non_ascii_text() -> None:
    assert is_same("ä", "ä")
    assert not is_same("", "ä")
    assert not is_same("\udcff", "ä")


def test_a_token_can_be_exchanged_only_once() -> None:
    sessions = Sessions()
    token = sessions.token
    session = sessions.exchange(token)
    assert session is not None
    assert sessions.exchange(token) is None
    assert sessions.token != token
    name, _, value = sessions.set_cookie(session).partition(";")[0].partition("=")
    assert sessions.find({"Cookie": f"other=1; {name}={value}"}) == session
    for cookie in ("", f"{name}=", f"{name}={session.csrf}", value, "\x00=;;"):
        assert sessions.find({"Cookie": cookie}) is None


def test_only_the_newest_sessions_are_kept() -> None:
    sessions = Sessions()
    made = [sessions.exchange(sessions.token) for _ in range(Sessions.MOST + 1)]
    found = [sessions.find({"Cookie": f"ucp-board={each.cookie}"}) for each in made if each]
    assert found == [None, *made[1:]]


def test_tokens_and_paths_are_long_and_unique_per_instance() -> None:
    one, other = Sessions(), Sessions()
    assert len({one.token, other.token, one.base, other.base}) == 4
    assert len(one.token) >= 40


def test_the_policy_allows_only_the_boards_own_files() -> None:
    words = policy("http://127.0.0.1:80", "/base")
    assert words.startswith("default-src 'none'; script-src http://127.0.0.1:80/base/board.js;")
    assert "unsafe" not in words
    assert "*" not in words
