"""Two concurrent proposals: one is pushed between the other's push and its pull request."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.forge.base import Forge, Proposal, PullRequest, Site
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Decision, Intent
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.proposal import propose
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef, open_branch
from tests.integration.gitops.promotion.app_repository import AppRepository, overlay

TWO = "images:\n- name: web\n  newTag: '1'\n- name: db\n  newTag: '7'\n"


class _Refused(Exception):
    pass


class SlowForge(Forge):
    """Opens a pull request only after another promotion has searched for it without success."""

    name, scope, refusal, silence = "slow", "", _Refused, ()

    def __init__(self) -> None:
        super().__init__(Site("slow", "https://forge.example.org", "shop/apps"))
        self.pushed, self.looked = threading.Event(), threading.Event()
        self.opened: PullRequest | None = None
        self.title = ""

    def _find(self, head: str, base: str) -> PullRequest | None:
        found = self.opened
        if self.pushed.is_set():
            self.looked.set()
        return found

    def _create(self, proposal: Proposal) -> PullRequest:
        self.pushed.set()
        assert self.looked.wait(60)
        self.opened = PullRequest(1, "https://forge.example.org/1")
        self.title = proposal.title
        return self.opened

    def _update(self, number: int, proposal: Proposal) -> None:
        self.title = proposal.title

    def _close(self, number: int) -> None:
        self.opened = None

    def _merge(self, number: int, proposal: Proposal) -> bool:
        return False

    def _status_and_message(self, error: Exception) -> tuple[int, str]:
        return 0, str(error)


@pytest.mark.usefixtures("home")
def test_proposal_is_kept_while_its_pull_request_is_being_opened(repository: AppRepository) -> None:
    repository.commit({overlay("echo", "stage"): TWO})
    forge = SlowForge()

    def promote(image: str) -> Landing:
        def words(decisions: Sequence[Decision]) -> str:
            return message([each.note for each in decisions])

        place = RepositoryRef(repository.url)
        with open_branch(place, apps=["echo"], message=words) as branch:
            intent = Intent("echo", "stage", images={image: Pin("new")})
            return propose(
                branch, forge, intent, Pace(),
                link="", merge=False, gate=lambda each: each, report=lambda _: None,
            )  # fmt: skip

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(promote, "web")
        assert forge.pushed.wait(60)
        second = pool.submit(promote, "db")
        assert [each.result(120).decisions[0].status for each in (first, second)] == ["pr", "pr"]

    assert repository.text(overlay("echo", "stage"), "ucp/echo/stage").count("newTag: 'new'") == 2
    assert forge.title == "promote echo to stage: 2 images"
