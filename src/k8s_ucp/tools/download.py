"""Downloads files over HTTP, completely or not at all.

Proxies and exceptions (HTTPS_PROXY, NO_PROXY), custom certificates (REQUESTS_CA_BUNDLE) and
~/.netrc apply as usual. URLs must be https, including redirects; plain http is allowed only on
loopback, or if the caller verifies the file against a hash. Errors contain the requested URL
without user, password and query.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit, urlunsplit

from k8s_ucp.errors import DeadlineExceeded, UcpError, advise_space
from k8s_ucp.loopback import is_loopback

if TYPE_CHECKING:
    from requests import Response

CONNECT_SECONDS = 5.0
STALL_SECONDS = 10.0
"""Without a byte for this long, a transfer is interrupted and resumed."""
ATTEMPTS = 4
"""Consecutive attempts without progress before giving up."""
PAUSE_SECONDS = 0.5
"""Before the second attempt; each further pause is twice as long."""
REDIRECTS = 8
FILE_BYTES = 4_000_000_000
"""Several times as large as any program or archive of sources."""
TEXT_BYTES = 4 * 1024 * 1024
TEXT_SECONDS = 30.0
"""Limits of a text, which is UTF-8."""
CHUNK = 256 * 1024

Progress = Callable[[int, int | None], None]
"""(bytes downloaded, bytes of the whole file if the server says so)"""


class NotReached(UcpError):
    """The server did not respond, or the connection broke repeatedly."""


class NotServed(UcpError):
    """The server responded, but not with the file. status: HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True)
class DownloadLimits:
    """Timeouts of a download in seconds."""

    deadline: float = 1800.0
    """For the whole file."""
    connect: float = CONNECT_SECONDS
    stall: float = STALL_SECONDS
    pause: float = PAUSE_SECONDS


def _never() -> bool:
    return False


def _silent(_here: int, _whole: int | None) -> None:
    pass


def fetch_file(
    url: str,
    target: Path,
    *,
    limits: DownloadLimits = DownloadLimits(),
    progress: Progress = _silent,
    ended: Callable[[], bool] = _never,
    plain: bool = False,
) -> None:
    """Download to `target`; resumes a download that an earlier call began (`.part`).

    ended: checked regularly; True cancels and keeps the part. plain: allow http. Raises NotReached,
    NotServed, DeadlineExceeded, UcpError.
    """
    transfer = _Transfer(url, target, limits, progress, ended, plain)
    until = time.monotonic() + limits.deadline
    fruitless, pause = 0, limits.pause
    while True:
        before = transfer.here()
        try:
            transfer.attempt(until)
            return
        except _Again as broken:
            fruitless = 0 if transfer.here() > before else fruitless + 1
            reason = str(broken)
        if ended():
            raise transfer.given_up()
        if fruitless >= ATTEMPTS:
            raise NotReached(
                f"failed to download {shown(url)}: {reason} ({ATTEMPTS} attempts)",
                next=_CHECK_NETWORK,
            )
        if time.monotonic() + pause > until:
            raise DeadlineExceeded(f"download of {shown(url)}", limits.deadline, reason)
        time.sleep(pause if fruitless else 0)
        pause = pause * 2 if fruitless else limits.pause


def fetch_text(url: str) -> str:
    """Download a small text over https. Raises NotReached, NotServed, UcpError."""
    limits = DownloadLimits(deadline=TEXT_SECONDS, stall=STALL_SECONDS)
    content = bytearray()
    try:
        with _answer(url, {}, limits, plain=False) as response:
            _require_served(url, response)
            while chunk := _next_chunk(response):
                content += chunk
                if len(content) > TEXT_BYTES:
                    raise too_large(url, TEXT_BYTES)
    except _Again as broken:
        raise NotReached(
            f"failed to download {shown(url)}: {broken}", next=_CHECK_NETWORK
        ) from broken
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise NotServed(f"{shown(url)} is not valid UTF-8", 200) from error


def server_responds(url: str, *, seconds: float, plain: bool = False) -> bool:
    """Whether a server responds there; the file may still be missing."""
    limits = DownloadLimits(deadline=seconds, connect=seconds, stall=seconds)
    try:
        with _answer(url, {}, limits, plain, head=True) as response:
            return response.status_code not in (407, *_OUT_OF_ORDER)
    except (UcpError, _Again):
        return False


def shown(url: str) -> str:
    """A URL for messages: without user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def too_large(url: str, limit: int) -> NotReached:
    """The error for a file or text of more bytes. url: may contain secrets."""
    return NotReached(f"failed to download {shown(url)}: it is larger than {limit:,} bytes")


_OUT_OF_ORDER = (502, 503, 504)
"""What gateways return if the server behind them is unavailable."""


_LENGTH = re.compile("[0-9]{1,18}")


class _Again(Exception):
    """The connection failed or broke, so a retry makes sense. The message is the reason."""


_CHECK_NETWORK = "check the network (HTTPS_PROXY sets a proxy), then run the command again"


@dataclass(frozen=True)
class _Transfer:
    """A download in progress. `.part` has its beginning, `.validator` identifies the version."""

    url: str
    target: Path
    limits: DownloadLimits
    progress: Progress
    ended: Callable[[], bool]
    plain: bool

    @property
    def part(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def validator(self) -> Path:
        return self.target.with_name(f"{self.target.name}.validator")

    def here(self) -> int:
        """Bytes that need not be downloaded again."""
        try:
            return self.part.stat().st_size if self.validator.exists() else 0
        except FileNotFoundError:
            return 0

    def attempt(self, until: float) -> None:
        have = self.here()
        headers = {}
        if have:
            headers = {"Range": f"bytes={have}-", "If-Range": self.validator.read_text("ascii")}
        left = replace(self.limits, deadline=max(0.0, until - time.monotonic()))
        with _answer(self.url, headers, left, self.plain) as response:
            if response.status_code == 416:  # the file became shorter
                self.forget()
                raise _Again("the file on the server changed")
            _require_served(self.url, response)
            if not _continues(response, have):
                self.forget()
                have = 0
            self.write(response, have, until)
        self.validator.unlink(missing_ok=True)
        self.part.replace(self.target)

    def write(self, response: Response, have: int, until: float) -> None:
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if _LENGTH.fullmatch(length) else None
        with self.reporting_own_errors():
            if version := _version(response):
                self.validator.write_text(version, "ascii")
            have = self.append(response, have, total, until)
        if total is not None and have != total:
            raise _Again(f"incomplete response: {have} of {total} bytes")

    def append(self, response: Response, have: int, total: int | None, until: float) -> int:
        """Write the response's body to the part; returns the size of the part.

        Raises DeadlineExceeded, UcpError.
        """
        with self.part.open("ab" if have else "wb") as file:
            # Written as soon as it arrives, and unmodified: archives must not be decompressed.
            while chunk := _next_chunk(response):
                file.write(chunk)
                have += len(chunk)
                if have > FILE_BYTES:
                    self.forget()
                    raise too_large(self.url, FILE_BYTES)
                self.progress(have, total)
                if self.ended():
                    raise self.given_up()
                if time.monotonic() > until:
                    raise DeadlineExceeded(
                        f"download of {shown(self.url)}", self.limits.deadline, f"{have} bytes"
                    )
        return have

    @contextlib.contextmanager
    def reporting_own_errors(self) -> Iterator[None]:
        """An error of our own files, such as a full disk, isn't the connection's: no retry."""
        try:
            yield
        except OSError as error:
            space = advise_space(error)
            raise UcpError(
                f"failed to write {self.part}: {error.strerror}",
                next=f"{space}, then run the command again: it continues"
                if space
                else f"make {self.part.parent} writable, then run the command again",
            ) from error

    def given_up(self) -> UcpError:
        return UcpError(f"download of {shown(self.url)} canceled")

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.validator.unlink(missing_ok=True)


def _next_chunk(response: Response) -> bytes:
    """The next bytes of the body as they arrive; empty at its end. Raises _Again."""
    from urllib3.exceptions import HTTPError

    try:
        chunk: bytes = response.raw.read1(CHUNK, decode_content=False)
    except (HTTPError, OSError) as error:
        raise _Again(_reason(error)) from error
    return chunk


def _version(response: Response) -> str:
    """Value for If-Range: a strong ETag, or else the date; empty if there is neither."""
    tag = response.headers.get("ETag", "")
    version = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
    return version if version.isascii() else ""


def _continues(response: Response, have: int) -> bool:
    """Whether the response is the rest of the file. Servers may send the whole file instead."""
    sent = response.headers.get("Content-Range", "")
    return response.status_code == 206 and have > 0 and sent.startswith(f"bytes {have}-")


def _require_served(url: str, response: Response) -> None:
    status = response.status_code
    if status in (429, *_OUT_OF_ORDER):
        raise _Again(f"the server returned {status} {response.reason}")
    if status not in (200, 206):
        raise NotServed(f"failed to download {shown(url)}: {status} {response.reason}", status)


@contextlib.contextmanager
def _answer(
    url: str, headers: dict[str, str], limits: DownloadLimits, plain: bool, *, head: bool = False
) -> Iterator[Response]:
    """The response after all redirects, with its body unread. Raises _Again, UcpError."""
    import requests
    from urllib3.exceptions import HTTPError

    from k8s_ucp.responses.bounded_adapter import BoundedAdapter
    from k8s_ucp.responses.limits import RequestLimits, bounded

    # Redirects are followed here, to refuse those that lead to plain http.
    at = url
    whole = RequestLimits(time.monotonic() + limits.deadline, sys.maxsize, wait=limits.stall)
    with requests.Session() as session, bounded(whole):
        for scheme in ("http://", "https://"):
            session.mount(scheme, BoundedAdapter())
        session.headers.update({"User-Agent": "k8s-ucp", "Accept-Encoding": "identity"})
        try:
            for _ in range(REDIRECTS):
                try:
                    _require_secure(at, url, plain)
                    response = session.request(
                        "HEAD" if head else "GET",
                        at,
                        headers=headers,
                        stream=True,
                        allow_redirects=False,
                        timeout=(limits.connect, limits.stall),
                    )
                except ValueError as error:  # requests parses the URL of a redirect, too.
                    raise requests.exceptions.InvalidURL(at) from error
                with contextlib.closing(response):
                    onward = response.headers.get("Location")
                    if head or not response.is_redirect or not onward:
                        yield response
                        return
                at = urljoin(at, onward)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise _Again(_reason(error)) from error
    raise NotServed(f"failed to download {shown(url)}: redirect loop", 302)


def _require_secure(at: str, asked: str, plain: bool) -> None:
    """Raises NotServed, or ValueError if it is no URL."""
    parts = urlsplit(at)
    local = is_loopback(parts.hostname or "")
    if parts.scheme == "https" or (parts.scheme == "http" and (local or plain)):
        return
    raise NotServed(f"{shown(asked)} redirects to {shown(at)}, which is not https", 302)


def _reason(error: Exception) -> str:
    """The reason in our own words: the libraries' messages contain proxies with passwords."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    known: tuple[tuple[type[Exception], str], ...] = (
        (requests.exceptions.ProxyError, "the proxy refused the connection or is not responding"),
        (requests.exceptions.SSLError, "the server's certificate is not trusted"),
        (requests.exceptions.ConnectTimeout, "host not reachable"),
        (requests.exceptions.ReadTimeout, "timed out"),
        (ReadTimeoutError, "timed out"),
        (requests.exceptions.ConnectionError, "connection failed"),
        (requests.exceptions.InvalidURL, "the URL is not valid"),
    )
    return next(
        (words for kind, words in known if isinstance(error, kind)),
        "the connection was interrupted",
    )
