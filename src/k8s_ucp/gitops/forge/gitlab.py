"""Merge requests on GitLab, through python-gitlab."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError, GitlabHttpError

from k8s_ucp.gitops.forge.base import (
    REQUEST_SECONDS,
    ForgeFailed,
    NotReady,
    Proposal,
    PullRequest,
    Site,
    until_ready,
)

_NOT_YET = (405, 406, 409, 422)
"""What GitLab answers while it works out whether a merge request can be merged."""


class _OneHost(requests.Session):
    """Leaves the token at its host; requests does so for its own header only."""

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        super().rebuild_auth(prepared_request, response)
        old, new = str(response.request.url), str(prepared_request.url)
        if self.should_strip_auth(old, new):
            prepared_request.headers.pop("PRIVATE-TOKEN", None)


class GitLab:
    """One project there."""

    def __init__(self, site: Site, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = Gitlab(
            site.root,
            private_token=site.token,
            timeout=REQUEST_SECONDS,
            keep_base_url=True,
            session=_OneHost(),
        )
        self._project = self._client.projects.get(site.path, lazy=True)
        self._requests = f"/projects/{quote(site.path, safe='')}/merge_requests"
        self._what = f"{site.root}/{site.path}"
        self._sleep = sleep

    def find(self, head: str, base: str) -> PullRequest | None:
        with self._translated("list merge requests"):
            found = self._project.mergerequests.list(
                state="opened", source_branch=head, target_branch=base, get_all=False
            )
            return PullRequest(found[0].iid, found[0].web_url) if found else None

    def create(self, proposal: Proposal) -> PullRequest:
        with self._translated("open a merge request"):
            try:
                made = self._project.mergerequests.create(
                    {
                        "source_branch": proposal.head,
                        "target_branch": proposal.base,
                        "title": proposal.title,
                        "description": proposal.body,
                        "remove_source_branch": True,
                        "squash": True,
                    }
                )
            except GitlabError as error:
                taken = error.response_code == 409
                found = self.find(proposal.head, proposal.base) if taken else None
                if found is None:
                    raise
                self.update(found, proposal)
                return found
            return PullRequest(made.iid, made.web_url)

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        with self._translated(f"update merge request {request.number}"):
            self._project.mergerequests.update(
                request.number, {"title": proposal.title, "description": proposal.body}
            )

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        with self._translated(f"enable auto-merge of merge request {request.number}"):
            return until_ready(lambda: self._merge(request, proposal), self._sleep)

    def _merge(self, request: PullRequest, proposal: Proposal) -> bool:
        settings: dict[str, Any] = {
            "merge_when_pipeline_succeeds": True,
            # The same under its new name (GitLab 17.11).
            "auto_merge": True,
            "squash": True,
            "squash_commit_message": f"{proposal.title}\n\n{proposal.body}",
            "should_remove_source_branch": True,
            "sha": proposal.commit,
        }
        try:
            answer = self._client.http_put(
                f"{self._requests}/{request.number}/merge", post_data=settings
            )
        except GitlabHttpError as error:
            if error.response_code in _NOT_YET:
                raise NotReady(request, str(error.error_message)) from error
            raise
        return isinstance(answer, dict) and answer.get("state") == "merged"

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except GitlabError as error:
            said = str(error.error_message).strip()
            raise ForgeFailed(
                f"failed to {action} on {self._what}: {error.response_code or ''} {said}",
                next=_ADVICE.get(error.response_code or 0),
            ) from error
        except requests.RequestException as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not responding ({type(error).__name__})",
                next="check the URL and the network, then run the command again",
            ) from error


_ADVICE = {
    401: "check the token: GitLab rejected it",
    403: "grant the token the scope api and the role Developer or higher",
    404: "check the project's name and the token's access to it",
}
