"""Pull requests on GitHub and GitHub Enterprise, through PyGithub."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import requests
from github import Auth, Github, GithubException
from github.Requester import (
    HTTPRequestsConnectionClass,
    HTTPSRequestsConnectionClass,
    Requester,
)

from k8s_ucp.gitops.forge.base import (
    GITHUB_CLOUD,
    REQUEST_SECONDS,
    Forge,
    ForgeFailed,
    Proposal,
    PullRequest,
    Site,
)
from k8s_ucp.gitops.forge.limited_responses import LimitedAdapter


def api_url(root: str) -> str:
    """The URL of GitHub's API. root: URL of its web page, without a slash at the end.

    GitHub and GitHub Enterprise Cloud have a host for it, GitHub Enterprise Server a path.
    """
    host = urlsplit(root).hostname or ""
    if re.fullmatch(GITHUB_CLOUD, host):
        return f"https://api.{host}"
    return f"{root}/api/v3"


class _LimitedHttp(HTTPRequestsConnectionClass):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.session.mount("http://", LimitedAdapter())


class _LimitedHttps(HTTPSRequestsConnectionClass):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.session.mount("https://", LimitedAdapter())


class GitHub(Forge):
    """A repository on GitHub."""

    name = "GitHub"
    scope = "write access to contents and pull requests"
    taken = 422
    refusal = GithubException
    silence = (requests.RequestException,)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        Requester.injectConnectionClasses(_LimitedHttp, _LimitedHttps)
        client = Github(
            auth=Auth.Token(site.token),
            base_url=api_url(site.root),
            timeout=REQUEST_SECONDS,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
        )
        self._repository = client.get_repo(site.path)

    def _find(self, head: str, base: str) -> PullRequest | None:
        owner = self._follow_redirect()
        for pull in self._repository.get_pulls(state="open", head=f"{owner}:{head}", base=base):
            # A fork of the same owner may have a branch with the same name.
            if pull.head.repo and pull.head.repo.id == pull.base.repo.id:
                return PullRequest(pull.number, pull.html_url)
        return None

    def _follow_redirect(self) -> str:
        """The repository's present owner. Later calls go to its present name.

        GitHub redirects from the old name of one that was renamed or moved. PyGithub would follow
        without the query, so list all pull requests, and take the redirect of a change for success.
        """
        try:
            # Unlike full_name, it is read from GitHub.
            name = str(self._repository.raw_data["full_name"])
        except RuntimeError as error:  # PyGithub's, for a redirect to another host or protocol.
            raise ForgeFailed(
                f"{self._what} is redirected: {error}", next="use the URL that it is redirected to"
            ) from error
        return name.partition("/")[0]

    def _create(self, proposal: Proposal) -> PullRequest:
        pull = self._repository.create_pull(
            base=proposal.base, head=proposal.head, title=proposal.title, body=proposal.body
        )
        return PullRequest(pull.number, pull.html_url)

    def _update(self, number: int, proposal: Proposal) -> None:
        self._repository.get_pull(number).edit(title=proposal.title, body=proposal.body)

    def _close(self, number: int) -> None:
        self._repository.get_pull(number).edit(state="closed")

    def _merge(self, number: int, proposal: Proposal) -> bool:
        pull = self._repository.get_pull(number)
        try:
            pull.enable_automerge(
                merge_method="SQUASH",
                commit_headline=proposal.title,
                commit_body=proposal.body,
                expected_head_oid=proposal.commit,
            )
        except GithubException as error:
            # "Clean status": no check is pending, and GitHub requires an immediate merge instead.
            if "clean status" not in str(error):
                raise
            pull.merge(
                merge_method="squash",
                commit_title=proposal.title,
                commit_message=proposal.body,
                sha=proposal.commit,
            )
            return True
        return False

    def _status_and_message(self, error: GithubException) -> tuple[int, str]:
        data = error.data if isinstance(error.data, dict) else {}
        details = [e.get("message") for e in data.get("errors") or () if isinstance(e, dict)]
        messages = (data.get("message"), *details)
        return error.status, "; ".join(str(each) for each in messages if each)
