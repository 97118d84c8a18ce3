"""Pull requests, on whichever forge hosts the repository.

One pull request an app and environment: its branch has a fixed name, and a newer promotion
updates it instead of piling up another. What every forge can do is here; sites.py chooses one.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import redact

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


@dataclass(frozen=True)
class Site:
    """Where a repository's forge is. root: of its web pages, without a trailing slash."""

    kind: str
    root: str
    path: str
    """`owner/name`, on GitLab with all groups."""
    token: str = field(repr=False, default="")


class Forge(ABC):
    """One repository on a forge. Raises ForgeFailed throughout.

    What is done when stands here; a forge says how to ask for it, and what its answers mean.
    """

    name: ClassVar[str]
    request: ClassVar[str] = "pull request"
    """What it calls one."""
    scope: ClassVar[str]
    """What a token needs, where it is not enough."""
    taken: ClassVar[int] = 409
    """Status of an answer that there is a pull request already."""
    not_yet: ClassVar[tuple[int, ...]] = (405, 409)
    """Statuses while it works out whether a pull request can be merged."""
    refusal: ClassVar[type[Exception]]
    """What its library raises for an answer that is no success."""
    silence: ClassVar[tuple[type[Exception], ...]]
    """What it raises where there is no answer."""

    def __init__(self, site: Site, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._what = redact(f"{site.root}/{site.path}")
        self._sleep = sleep

    def find(self, head: str, base: str) -> PullRequest | None:
        """The open pull request of a branch."""
        with self._translated(f"list {self.request}s"):
            return self._find(head, base)

    def create(self, proposal: Proposal) -> PullRequest:
        """Open one; where another process was faster, that one."""
        with self._translated(f"open a {self.request}"):
            try:
                return self._create(proposal)
            except self.refusal as error:
                taken = self._told(error)[0] == self.taken
                found = self._find(proposal.head, proposal.base) if taken else None
                if found is None:
                    raise
        self.update(found, proposal)
        return found

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        """Say the new proposal in an open one."""
        with self._translated(f"update {self.request} {request.number}"):
            self._update(request.number, proposal)

    def close(self, request: PullRequest) -> None:
        """Close an open one without a merge."""
        with self._translated(f"close {self.request} {request.number}"):
            self._close(request.number)

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        """Have it squashed into one commit once its checks are green; True: it is merged now."""

        def attempt() -> bool:
            try:
                return self._merge(request.number, proposal)
            except self.refusal as error:
                status, said = self._told(error)
                if status in self.not_yet:
                    raise NotReady(request, said) from error
                raise

        with self._translated(f"enable auto-merge of {self.request} {request.number}"):
            return until_ready(attempt, self._sleep)

    @abstractmethod
    def _find(self, head: str, base: str) -> PullRequest | None: ...

    @abstractmethod
    def _create(self, proposal: Proposal) -> PullRequest: ...

    @abstractmethod
    def _update(self, number: int, proposal: Proposal) -> None: ...

    @abstractmethod
    def _close(self, number: int) -> None: ...

    @abstractmethod
    def _merge(self, number: int, proposal: Proposal) -> bool: ...

    @abstractmethod
    def _told(self, error: Any) -> tuple[int, str]:
        """(status, message) of a refusal."""

    @contextlib.contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except self.refusal as error:
            status, said = self._told(error)
            advice = {
                401: f"check the token: {self.name} rejected it",
                403: f"grant the token {self.scope}",
                404: "check the repository's name and the token's access to it",
            }
            raise ForgeFailed(
                f"failed to {action} on {self._what}: {status or ''} {said}".rstrip(),
                next=advice.get(status),
            ) from error
        except self.silence as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not responding ({type(error).__name__})",
                next="check the URL and the network, then run the command again",
            ) from error


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
