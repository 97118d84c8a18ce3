"""Pull requests on Gitea and Forgejo, with direct calls of their API.

No Python client is both maintained and small (docs/decisions lists the candidates), and only a few
calls are needed, so this module uses HTTP from the standard library.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from k8s_ucp.gitops.forge import base
from k8s_ucp.gitops.forge.base import (
    REQUEST_SECONDS,
    Forge,
    Proposal,
    PullRequest,
    Site,
)

_PAGE = 50
"""Pull requests per page; a server may be configured to return fewer."""
_PAGES = 1000


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which could send the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Refusal(Exception):
    """An HTTP status that indicates failure."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status, self.message = status, message


class Gitea(Forge):
    """A repository on a Gitea or Forgejo server."""

    name = "Gitea"
    scope = "the scope write:repository"
    refusal = _Refusal
    silence = (OSError, http.client.HTTPException)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._base = f"{site.root}/api/v1/repos/{quote(site.path)}"
        self._token = site.token
        self._open = build_opener(_NoRedirects()).open

    def _find(self, head: str, base: str) -> PullRequest | None:
        for page in range(1, _PAGES):
            found = self._call("GET", f"pulls?state=open&limit={_PAGE}&page={page}")
            for each in found:
                branches = each["head"]["ref"], each["base"]["ref"]
                if branches == (head, base) and not _from_fork(each):
                    return PullRequest(each["number"], each["html_url"])
            if not found:
                break
        return None

    def _create(self, proposal: Proposal) -> PullRequest:
        branches = {"head": proposal.head, "base": proposal.base}
        made = self._call("POST", "pulls", {**branches, **_words(proposal)})
        return PullRequest(made["number"], made["html_url"])

    def _update(self, number: int, proposal: Proposal) -> None:
        self._call("PATCH", f"pulls/{number}", _words(proposal))

    def _close(self, number: int) -> None:
        self._call("PATCH", f"pulls/{number}", {"state": "closed"})

    def _merge(self, number: int, proposal: Proposal) -> bool:
        wanted = {
            "Do": "squash",
            "MergeTitleField": proposal.title,
            "MergeMessageField": proposal.body,
            "head_commit_id": proposal.commit,
            "merge_when_checks_succeed": True,
            "delete_branch_after_merge": True,
        }
        try:
            self._call("POST", f"pulls/{number}/merge", wanted)
        except _Refusal as error:
            # 405: "try again later", during the check for conflicts. 409: the merge is already
            # scheduled, but with the previous proposal's message: cancel it and schedule it again.
            if error.status == 409 and "already" in error.message:
                self._call("DELETE", f"pulls/{number}/merge")
            raise
        return bool(self._call("GET", f"pulls/{number}")["merged"])

    def _status_and_message(self, error: _Refusal) -> tuple[int, str]:
        return error.status, error.message

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        request = Request(  # noqa: S310 (http or https: sites.py has checked)
            f"{self._base}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"token {self._token}",
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": "k8s-ucp",
            },
        )
        try:
            with self._open(request, timeout=REQUEST_SECONDS) as answer:
                text = answer.read(base.LARGEST + 1)
        except HTTPError as error:
            raise _Refusal(error.code, _message(error)) from error
        if len(text) > base.LARGEST:
            raise base.too_large(self._what)
        return json.loads(text) if text else None


def _from_fork(request: Mapping[str, Any]) -> bool:
    """The pull request's branch is in another repository, or in a deleted one."""
    source, target = request["head"].get("repo"), request["base"]["repo"]
    return source is None or source["id"] != target["id"]


def _words(proposal: Proposal) -> dict[str, str]:
    return {"title": proposal.title, "body": proposal.body}


def _message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(base.LARGEST)).get("message", ""))[:500]
    except (ValueError, AttributeError, OSError):
        return ""
