"""Finding our open pull request; one of a fork with the same branch name is never ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.gitops.forge.base import PullRequest, Site
from k8s_ucp.gitops.forge.gitea import Gitea
from k8s_ucp.gitops.forge.github import GitHub
from k8s_ucp.gitops.forge.gitlab import GitLab

HEAD, OURS = "ucp/echo/stage", 7


def gitea_request(number: int, repository: int | None, head: str = HEAD) -> dict[str, Any]:
    return {
        "number": number,
        "html_url": f"https://git.lan/{number}",
        "head": {"ref": head, "repo": None if repository is None else {"id": repository}},
        "base": {"ref": "main", "repo": {"id": OURS}},
    }


def found_on_gitea(monkeypatch: pytest.MonkeyPatch, *pages: list[Any]) -> PullRequest | None:
    forge = Gitea(Site("gitea", "https://git.lan", "octo/shop"))
    answers = iter([*pages, []])
    monkeypatch.setattr(forge, "_call", lambda *_: next(answers))
    return forge.find(HEAD, "main")


def found_on_github(*sources: int | None) -> PullRequest | None:
    forge = GitHub(Site("github", "https://git.lan", "octo/shop", "t"))
    base = SimpleNamespace(repo=SimpleNamespace(id=OURS))
    heads = [SimpleNamespace(repo=each and SimpleNamespace(id=each)) for each in sources]
    requests = [
        SimpleNamespace(number=i, html_url="", head=each, base=base)
        for i, each in enumerate(heads, 1)
    ]
    forge._repository = SimpleNamespace(  # type: ignore[assignment]
        raw_data={"full_name": "octo/shop"}, get_pulls=lambda **_: iter(requests)
    )
    return forge.find(HEAD, "main")


def found_on_gitlab(*sources: int | None) -> PullRequest | None:
    forge = GitLab(Site("gitlab", "https://git.lan", "octo/shop"))
    requests = [
        SimpleNamespace(iid=i, web_url="", source_project_id=each, target_project_id=OURS)
        for i, each in enumerate(sources, 1)
    ]
    listed = SimpleNamespace(list=lambda **_: iter(requests))
    forge._project = SimpleNamespace(mergerequests=listed)  # type: ignore[assignment]
    return forge.find(HEAD, "main")


def test_a_pull_request_of_a_fork_is_ignored_on_gitea(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = [gitea_request(1, 8), gitea_request(2, None)]
    assert found_on_gitea(monkeypatch, forks) is None
    found = found_on_gitea(monkeypatch, [*forks, gitea_request(3, OURS)])
    assert found is not None
    assert found.number == 3


def test_all_pages_of_gitea_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [gitea_request(1, OURS, "other"), gitea_request(2, OURS, "another")]
    found = found_on_gitea(monkeypatch, first, [gitea_request(3, OURS)])
    assert found is not None
    assert found.number == 3


def test_a_pull_request_of_a_fork_is_ignored_on_github() -> None:
    """GitHub is asked for the owner's branches, and a fork may have the same owner."""
    assert found_on_github(8, None) is None
    found = found_on_github(8, None, OURS)
    assert found is not None
    assert found.number == 3


def test_a_merge_request_of_a_fork_is_ignored_on_gitlab() -> None:
    assert found_on_gitlab(8, None) is None
    found = found_on_gitlab(8, None, OURS)
    assert found is not None
    assert found.number == 3
