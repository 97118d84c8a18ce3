"""Pull requests on GitHub and GitHub Enterprise, through PyGithub."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import requests
from github import Auth, Github, GithubException
from github.PullRequest import PullRequest as Pull

from k8s_ucp.gitops.forge.base import (
    REQUEST_SECONDS,
    ForgeFailed,
    NotReady,
    Proposal,
    PullRequest,
    Site,
    until_ready,
)


class GitHub:
    """One repository there."""

    def __init__(self, site: Site, *, sleep: Callable[[float], None] = time.sleep) -> None:
        public = urlsplit(site.root).hostname == "github.com"
        client = Github(
            auth=Auth.Token(site.token),
            base_url="https://api.github.com" if public else f"{site.root}/api/v3",
            timeout=REQUEST_SECONDS,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self._owner = site.path.split("/")[0]
        self._what = f"{site.root}/{site.path}"
        self._repository = client.get_repo(site.path, lazy=True)
        self._sleep = sleep

    def find(self, head: str, base: str) -> PullRequest | None:
        with self._translated("list pull requests"):
            for pull in self._repository.get_pulls(
                state="open", head=f"{self._owner}:{head}", base=base
            ):
                return PullRequest(pull.number, pull.html_url)
        return None

    def create(self, proposal: Proposal) -> PullRequest:
        with self._translated("open a pull request"):
            try:
                pull = self._repository.create_pull(
                    base=proposal.base,
                    head=proposal.head,
                    title=proposal.title,
                    body=proposal.body,
                )
            except GithubException as error:
                found = self.find(proposal.head, proposal.base) if error.status == 422 else None
                if found is None:
                    raise
                self.update(found, proposal)
                return found
            return PullRequest(pull.number, pull.html_url)

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        with self._translated(f"update pull request {request.number}"):
            self._repository.get_pull(request.number).edit(title=proposal.title, body=proposal.body)

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        with self._translated(f"enable auto-merge of pull request {request.number}"):
            pull = self._repository.get_pull(request.number)
            try:
                pull.enable_automerge(
                    merge_method="SQUASH",
                    commit_headline=proposal.title,
                    commit_body=proposal.body,
                    expected_head_oid=proposal.commit,
                )
            except GithubException as error:
                # Nothing is left to wait for: GitHub wants such ones merged at once.
                if "clean status" not in str(error):
                    raise
                return until_ready(lambda: _merge(pull, request, proposal), self._sleep)
        return False

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except GithubException as error:
            raise ForgeFailed(
                f"failed to {action} on {self._what}: {error.status} {_said(error)}",
                next=_ADVICE.get(error.status),
            ) from error
        except requests.RequestException as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not responding ({type(error).__name__})",
                next="check the URL and the network, then run the command again",
            ) from error


def _merge(pull: Pull, request: PullRequest, proposal: Proposal) -> bool:
    try:
        pull.merge(
            merge_method="squash",
            commit_title=proposal.title,
            commit_message=proposal.body,
            sha=proposal.commit,
        )
    except GithubException as error:
        if error.status in (405, 409):
            raise NotReady(request, _said(error)) from error
        raise
    return True


def _said(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    details = [each.get("message") for each in data.get("errors") or () if isinstance(each, dict)]
    return "; ".join(str(each) for each in (data.get("message"), *details) if each)


_ADVICE = {
    401: "check the token: GitHub rejected it",
    403: "grant the token write access to contents and pull requests",
    404: "check the repository's name and the token's access to it",
}
