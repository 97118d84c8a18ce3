"""Pull requests, on whichever forge hosts the repository.

One pull request an app and environment: its branch has a fixed name, and a newer promotion
updates it instead of piling up another. What every forge can do is here; sites.py chooses one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from k8s_ucp.errors import UcpError

REQUEST_SECONDS = 30


class ForgeFailed(UcpError):
    """A forge refused or failed a request."""


class NotReady(ForgeFailed):
    """The forge is still looking at the pull request, or does not let it be merged."""

    def __init__(self, request: PullRequest, said: str) -> None:
        super().__init__(
            f"the pull request {request.url} can't be merged now: {said}",
            next="merge it by hand, or run the same command again",
        )


@dataclass(frozen=True)
class PullRequest:
    """An open pull request. number: as people name it on that forge."""

    number: int
    url: str


@dataclass(frozen=True)
class Proposal:
    """What a pull request says: merge the branch `head`, now at `commit`, into `base`.

    title and body are also the message of the commit that the merge makes.
    """

    head: str
    base: str
    commit: str
    title: str
    body: str


class Forge(Protocol):
    """One repository on a forge. Raises ForgeFailed throughout."""

    def find(self, head: str, base: str) -> PullRequest | None:
        """The open pull request of a branch."""

    def create(self, proposal: Proposal) -> PullRequest:
        """Open one; where another process was faster, that one."""

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        """Say the new proposal in an open one."""

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        """Have it squashed into one commit once its checks are green; True: it is merged now."""


@dataclass(frozen=True)
class Site:
    """Where a repository's forge is. root: of its web pages, without a trailing slash."""

    kind: str
    root: str
    path: str
    """`owner/name`, on GitLab with all groups."""
    token: str = field(repr=False, default="")


def until_ready(
    attempt: Callable[[], bool], sleep: Callable[[float], None], *, tries: int = 20
) -> bool:
    """Ask for a merge until the forge has looked at the new commit: it takes a moment.

    attempt: raises NotReady where it is too early. Raises its last one when it stays too early.
    """
    for _ in range(tries - 1):
        with contextlib.suppress(NotReady):
            return attempt()
        sleep(0.5)
    return attempt()
