"""The requests that changed the cloud, in order: replaying them recreates the same cloud.

moto draws its ids from one random number generator, which is seeded with the number of the request,
so that a replayed request creates the same ids.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.cloud.call import HttpRequest
from k8s_ucp.cloud.json_lines import JsonLines

ACCOUNT_HEADER = "x-moto-account-id"
"""Tells moto the account of the call. Requests recorded without it are replayed without it."""
_KEPT = ("authorization", "content-type", "host", "x-amz-target", "x-amz-date", ACCOUNT_HEADER)


@dataclass(frozen=True)
class RecordedRequest:
    """A request and its number in the ledger."""

    number: int
    request: HttpRequest


class Recording:
    """A file of requests; they contain passwords of databases."""

    def __init__(self, file: Path) -> None:
        self._journal = JsonLines(file)

    def append(self, number: int, request: HttpRequest) -> None:
        """Append a request and sync it to disk."""
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
        body = base64.b64encode(request.body).decode("ascii")
        self._journal.append(
            {"number": number, **asdict(request), "headers": headers, "body": body}
        )

    def clear(self) -> None:
        """Delete all requests."""
        self._journal.clear()

    def requests(self) -> Iterator[RecordedRequest]:
        """All requests, oldest first."""
        for item in self._journal.items():
            body = base64.b64decode(item.pop("body"))
            yield RecordedRequest(item.pop("number"), HttpRequest(**item, body=body))
