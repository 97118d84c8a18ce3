"""Pull requests on Gitea and Forgejo, through their API.

Of the Python clients none is both kept and small (docs/decisions tells which were looked at), and
four calls are all we need: so this speaks HTTP itself, with the standard library.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from k8s_ucp.gitops.forge.base import (
    REQUEST_SECONDS,
    ForgeFailed,
    NotReady,
    Proposal,
    PullRequest,
    Site,
    until_ready,
)

_PAGE = 50


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Gitea:
    """One repository there."""

    def __init__(self, site: Site, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._base = f"{site.root}/api/v1/repos/{quote(site.path)}"
        self._what = f"{site.root}/{site.path}"
        self._token = site.token
        self._open = build_opener(_NoRedirects()).open
        self._sleep = sleep

    def find(self, head: str, base: str) -> PullRequest | None:
        action, page = "list pull requests", 1
        while True:
            found = self._call(action, "GET", f"pulls?state=open&limit={_PAGE}&page={page}")
            for each in found:
                if each["head"]["ref"] == head and each["base"]["ref"] == base:
                    return PullRequest(each["number"], each["html_url"])
            if len(found) < _PAGE:
                return None
            page += 1

    def create(self, proposal: Proposal) -> PullRequest:
        wanted = {
            "head": proposal.head,
            "base": proposal.base,
            "title": proposal.title,
            "body": proposal.body,
        }
        try:
            made = self._call("open a pull request", "POST", "pulls", wanted)
        except _Status as error:
            found = self.find(proposal.head, proposal.base) if error.status == 409 else None
            if found is None:
                raise
            self.update(found, proposal)
            return found
        return PullRequest(made["number"], made["html_url"])

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        self._call(
            f"update pull request {request.number}",
            "PATCH",
            f"pulls/{request.number}",
            {"title": proposal.title, "body": proposal.body},
        )

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        return until_ready(lambda: self._merge(request, proposal), self._sleep)

    def _merge(self, request: PullRequest, proposal: Proposal) -> bool:
        place, action = (
            f"pulls/{request.number}",
            f"enable auto-merge of pull request {request.number}",
        )
        wanted = {
            "Do": "squash",
            "MergeTitleField": proposal.title,
            "MergeMessageField": proposal.body,
            "head_commit_id": proposal.commit,
            "merge_when_checks_succeed": True,
            "delete_branch_after_merge": True,
        }
        try:
            self._call(action, "POST", f"{place}/merge", wanted)
        except _Status as error:
            # 405: "try again later", while it looks for conflicts. 409: planned already, but
            # with the message of the proposal before: that plan is dropped and made anew.
            if error.status == 409 and "already" in error.message:
                self._call(action, "DELETE", f"{place}/merge")
            if error.status in (405, 409):
                raise NotReady(request, error.said) from error
            raise
        return bool(self._call(action, "GET", place)["merged"])

    def _call(
        self, action: str, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Any:
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
                text = answer.read()
        except HTTPError as error:
            raise _Status(self._what, action, error.code, _message(error)) from error
        except (URLError, OSError, http.client.HTTPException) as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not responding ({type(error).__name__})",
                next="check the URL and the network, then run the command again",
            ) from error
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not a Gitea server",
                next="check the URL, or set the type of the forge with --forge",
            ) from error


class _Status(ForgeFailed):
    """An HTTP status that is no success."""

    def __init__(self, what: str, action: str, status: int, said: str) -> None:
        self.status, self.said = status, said
        super().__init__(
            f"failed to {action} on {what}: {status} {said}".rstrip(), next=_ADVICE.get(status)
        )


def _message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read()).get("message", ""))[:500]
    except (ValueError, AttributeError, OSError):
        return ""


_ADVICE = {
    401: "check the token: Gitea rejected it",
    403: "grant the token the scope write:repository",
    404: "check the repository's name and the token's access to it",
}
