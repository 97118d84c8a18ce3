"""A repository that was renamed, or that GitHub does not serve for now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from k8s_ucp.gitops.forge.base import ForgeFailed, Proposal, PullRequest, Site
from k8s_ucp.gitops.forge.gitea import Gitea
from k8s_ucp.gitops.forge.github import GitHub
from tests.serving import serving

HEAD = "ucp/echo/stage"
OLD, NEW, BY_ID = (f"/api/v3/{each}" for each in ("repos/octo/shop", "repos/acme/store", "repos/7"))
LIST = f"GET {NEW}/pulls?base=main&head=acme%3Aucp%2Fecho%2Fstage&state=open"


class _GitHub(BaseHTTPRequestHandler):
    """Responds as `answers` say: {request: (status, body or location)}."""

    answers: dict[str, tuple[int, Any]]
    requests: list[str]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = f"{self.command} {self.path}"
        self.requests.append(request)
        status, content = self.answers.get(request, (404, {"message": "Not Found"}))
        self.send_response(status)
        if status == 301:
            self.send_header("Location", content)
        body = json.dumps(content).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 (the base class's name)

    def log_message(self, format: str, *args: object) -> None:
        """Not logged."""


@pytest.fixture
def address() -> Iterator[str]:
    _GitHub.answers, _GitHub.requests = {}, []
    with serving(HTTPServer(("127.0.0.1", 0), _GitHub)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def forge(address: str) -> GitHub:
    return GitHub(Site("github", address, "octo/shop", "t"))


def pull(number: int, head: str) -> dict[str, Any]:
    repository = {"id": 7}
    return {
        "number": number,
        "html_url": f"https://git.lan/{number}",
        "head": {"ref": head, "repo": repository},
        "base": {"ref": "main", "repo": repository},
    }


def test_pull_requests_of_a_renamed_repository_are_those_of_its_new_name(address: str) -> None:
    renamed = {"id": 7, "full_name": "acme/store", "url": f"{address}{NEW}"}
    _GitHub.answers |= {
        f"GET {OLD}": (301, f"{address}{BY_ID}"),
        f"GET {OLD}/pulls?base=main&head=octo%3Aucp%2Fecho%2Fstage&state=open": (
            301,
            f"{address}{BY_ID}/pulls",
        ),
        f"GET {BY_ID}": (200, renamed),
        # Without a query: the pull requests of everybody.
        f"GET {BY_ID}/pulls": (200, [pull(1, "of-others")]),
        LIST: (200, []),
        f"POST {NEW}/pulls": (201, pull(2, HEAD)),
    }
    github = forge(address)
    assert github.find(HEAD, "main") is None
    made = github.create(Proposal(HEAD, "main", "c0ffee", "title", "body"))
    assert made == PullRequest(2, "https://git.lan/2")
    assert _GitHub.requests == [f"GET {OLD}", f"GET {BY_ID}", LIST, f"POST {NEW}/pulls"]


def test_a_redirect_to_another_protocol_is_reported(address: str) -> None:
    _GitHub.answers[f"GET {OLD}"] = (301, "https://127.0.0.1/elsewhere")
    with pytest.raises(ForgeFailed, match=r"octo/shop is redirected: .* to https"):
        forge(address).find(HEAD, "main")


def test_a_redirect_of_gitea_which_could_lead_the_token_elsewhere_is_reported(address: str) -> None:
    request = "GET /api/v1/repos/octo/shop/pulls?state=open&limit=50&page=1"
    _GitHub.answers[request] = (301, f"{address}/api/v1/repos/acme/store/pulls")
    with pytest.raises(ForgeFailed, match="octo/shop: 301") as failure:
        Gitea(Site("gitea", address, "octo/shop")).find(HEAD, "main")
    assert "it was renamed or moved" in (failure.value.next or "")
    assert _GitHub.requests == [request]


def test_a_limit_of_requests_needs_patience_not_permissions(address: str) -> None:
    message = "API rate limit exceeded for user ID 1."
    _GitHub.answers[f"GET {OLD}"] = (403, {"message": message})
    with pytest.raises(ForgeFailed, match="403 API rate limit") as failure:
        forge(address).find(HEAD, "main")
    assert failure.value.next == "wait some minutes, then run the command again"
