"""Pull requests on any supported forge.

There is one pull request per app and environment: its branch name is fixed, and a newer promotion
updates it instead of opening another one. This module contains what all forges have in common;
sites.py selects the forge.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import redact

REQUEST_SECONDS = 30
"""Longest wait for the next bytes."""
CALL_SECONDS = 120.0
"""Limit of everything that one call requests, also if the forge sends a byte now and then."""
UNAVAILABLE = (500, 502, 503, 504)
"""Response statuses of a forge that is overloaded or restarts."""
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a call to such a forge is repeated."""
LARGEST = 16_000_000
"""Bytes of a response; a page of pull requests has some hundred thousand."""
MERGE_TRIES = 20
GITHUB_CLOUD = r"github\.com|.+\.ghe\.com"
"""Matches the hosts of GitHub: github.com, and domains of GitHub Enterprise Cloud."""


T = TypeVar("T")


class ForgeFailed(UcpError):
    """A request to a forge failed or was rejected."""


class TooSlow(Exception):
    """The forge did not send a complete response in time."""


class NotReady(ForgeFailed):
    """The forge is still checking the pull request, or doesn't allow the merge."""

    def __init__(self, request: PullRequest, message: str) -> None:
        super().__init__(
            f"the pull request {request.url} can't be merged now: {message}",
            next="merge it by hand, or run the same command again",
        )


@dataclass(frozen=True)
class PullRequest:
    """An open pull request. number: as shown by the forge."""

    number: int
    url: str


@dataclass(frozen=True)
class Proposal:
    """Content of a pull request: merge the branch `head`, now at `commit`, into `base`.

    title and body are also used for the message of the merge commit.
    """

    head: str
    base: str
    commit: str
    title: str
    body: str


@dataclass(frozen=True)
class Site:
    """A repository's forge. root: base URL of its web pages, without a trailing slash."""

    kind: str
    root: str
    path: str
    """`owner/name`, on GitLab with all groups."""
    token: str = field(repr=False, default="")


class Forge(ABC):
    """A repository on a forge. Every method raises ForgeFailed.

    This class contains the workflow; subclasses make the API calls and interpret the responses.
    """

    name: ClassVar[str]
    request: ClassVar[str] = "pull request"
    """The forge's term for a pull request."""
    scope: ClassVar[str]
    """Permissions that a token needs, for an error message."""
    taken: ClassVar[int] = 409
    """Response status if the pull request already exists."""
    not_yet: ClassVar[tuple[int, ...]] = (405, 409)
    """Response statuses while the forge determines whether a pull request can be merged."""
    refusal: ClassVar[type[Exception]]
    """Exception of the client library for an unsuccessful response."""
    silence: ClassVar[tuple[type[Exception], ...]]
    """Exceptions of the client library if there is no response."""

    def __init__(self, site: Site) -> None:
        self._what = redact(f"{site.root}/{site.path}")

    def find(self, head: str, base: str) -> PullRequest | None:
        """The open pull request of a branch, or None."""
        with self._translated(f"list {self.request}s"):
            return self._respond(lambda: self._find(head, base))

    def create(self, proposal: Proposal) -> PullRequest:
        """Open a pull request, or update the one that another process has just opened."""
        with self._translated(f"open a {self.request}"):
            try:
                return self._respond(lambda: self._create(proposal))
            except self.refusal as error:
                if self._status_and_message(error)[0] != self.taken:
                    raise
                found = self._respond(lambda: self._find(proposal.head, proposal.base))
                if found is None:
                    raise
        self.update(found, proposal)
        return found

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        """Update title and body of an open pull request."""
        with self._translated(f"update {self.request} {request.number}"):
            self._respond(lambda: self._update(request.number, proposal))

    def close(self, request: PullRequest) -> None:
        """Close an open pull request without merging it."""
        with self._translated(f"close {self.request} {request.number}"):
            self._respond(lambda: self._close(request.number))

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        """Enable auto-merge with squash after successful checks; True if it is already merged."""

        def attempt() -> bool:
            try:
                return in_time(lambda: self._merge(request.number, proposal))
            except self.refusal as error:
                status, message = self._status_and_message(error)
                if status in self.not_yet:
                    raise NotReady(request, message) from error
                raise

        with self._translated(f"enable auto-merge of {self.request} {request.number}"):
            return until_ready(attempt)

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
    def _status_and_message(self, error: Any) -> tuple[int, str]:
        """(status, message) of an unsuccessful response."""

    def _respond(self, call: Callable[[], T]) -> T:
        """The result of a call that may be repeated, which it is if the forge is unavailable."""
        for pause in PAUSES:
            try:
                return in_time(call)
            except self.refusal as error:
                if self._status_and_message(error)[0] not in UNAVAILABLE:
                    raise
            time.sleep(pause)
        return in_time(call)

    @contextlib.contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        silence: tuple[type[Exception], ...] = (*self.silence, TooSlow)
        try:
            yield
        except self.refusal as error:
            status, message = self._status_and_message(error)
            advice = {
                401: f"check the token: {self.name} rejected it",
                403: f"grant the token {self.scope}",
                404: "check the repository's name and the token's access to it",
            }
            if status in (301, 302, 307, 308):
                advice[status] = "use the URL that the repository has now: it was renamed or moved"
            if status == 429 or "rate limit" in message.lower():
                advice[status] = "wait some minutes, then run the command again"
            raise ForgeFailed(
                f"failed to {action} on {self._what}: {status or ''} {message}".rstrip(),
                next=advice.get(status),
            ) from error
        except silence as error:
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not responding ({type(error).__name__})",
                next="check the URL and the network, then run the command again",
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            # Its response has another form, as that of another server, or is no JSON.
            raise ForgeFailed(
                f"failed to {action}: {self._what} is not on a {self.name} server",
                next="check the URL, or set the type of the forge with --forge",
            ) from error


def too_large(what: str) -> ForgeFailed:
    """The error for a response of more than LARGEST bytes."""
    return ForgeFailed(f"{what} returned more than {LARGEST:,} bytes")


def in_time(call: Callable[[], T], seconds: float | None = None) -> T:
    """The result of a call. Raises TooSlow if it takes longer, and what the call raises.

    The timeouts of the client libraries begin again with every byte. seconds: default CALL_SECONDS.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 (raised again by the caller)
            failures.append(error)

    # As a daemon it does not keep the process from ending if it never ends.
    thread = threading.Thread(target=work, name="forge", daemon=True)
    thread.start()
    thread.join(CALL_SECONDS if seconds is None else seconds)
    if failures:
        raise failures[0]
    if not results:
        raise TooSlow
    return results[0]


def until_ready(attempt: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Retry a merge until the forge has processed the new commit, which takes a moment.

    attempt: raises NotReady if it is too early. After the last try, NotReady is raised.
    """
    for _ in range(MERGE_TRIES - 1):
        with contextlib.suppress(NotReady):
            return attempt()
        sleep(0.5)
    return attempt()
