"""Merge requests on GitLab, through python-gitlab."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError

from k8s_ucp.gitops.forge.base import REQUEST_SECONDS, Forge, Proposal, PullRequest, Site
from k8s_ucp.gitops.forge.limited_responses import LimitedAdapter


class _OneHost(requests.Session):
    """Drops the token on redirects to another host; requests does that only for Authorization."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, LimitedAdapter())

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        super().rebuild_auth(prepared_request, response)
        old, new = str(response.request.url), str(prepared_request.url)
        if self.should_strip_auth(old, new):
            prepared_request.headers.pop("PRIVATE-TOKEN", None)


class GitLab(Forge):
    """A project on GitLab."""

    name = "GitLab"
    request = "merge request"
    scope = "the scope api and the role Developer or higher"
    not_yet = (405, 406, 409, 422)
    refusal = GitlabError
    silence = (requests.RequestException,)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._client = Gitlab(
            site.root,
            private_token=site.token,
            timeout=REQUEST_SECONDS,
            keep_base_url=True,
            session=_OneHost(),
        )
        self._project = self._client.projects.get(site.path, lazy=True)
        self._requests = f"/projects/{quote(site.path, safe='')}/merge_requests"

    def _find(self, head: str, base: str) -> PullRequest | None:
        found = self._project.mergerequests.list(
            state="opened", source_branch=head, target_branch=base, iterator=True
        )
        for each in found:
            # A fork's branch may have the same name.
            if each.source_project_id == each.target_project_id:
                return PullRequest(each.iid, each.web_url)
        return None

    def _create(self, proposal: Proposal) -> PullRequest:
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
        return PullRequest(made.iid, made.web_url)

    def _update(self, number: int, proposal: Proposal) -> None:
        self._project.mergerequests.update(
            number, {"title": proposal.title, "description": proposal.body}
        )

    def _close(self, number: int) -> None:
        self._project.mergerequests.update(number, {"state_event": "close"})

    def _merge(self, number: int, proposal: Proposal) -> bool:
        settings: dict[str, Any] = {
            "merge_when_pipeline_succeeds": True,
            # New name of the same parameter (GitLab 17.11).
            "auto_merge": True,
            "squash": True,
            "squash_commit_message": f"{proposal.title}\n\n{proposal.body}",
            "should_remove_source_branch": True,
            "sha": proposal.commit,
        }
        answer = self._client.http_put(f"{self._requests}/{number}/merge", post_data=settings)
        return isinstance(answer, dict) and answer.get("state") == "merged"

    def _status_and_message(self, error: GitlabError) -> tuple[int, str]:
        return error.response_code or 0, str(error.error_message).strip()
