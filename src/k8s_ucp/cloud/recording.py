"""The requests that changed the cloud, in order: played again, they make the same cloud.

moto draws its ids from one source of random numbers; with the number of the request as its seed,
a request makes the same ids whenever it is played.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.cloud.call import HttpRequest
from k8s_ucp.cloud.json_lines import JsonLines

ACCOUNT_HEADER = "x-moto-account-id"
"""By which moto is told whose call it is. Requests recorded without it are played without it."""
_KEPT = ("authorization", "content-type", "host", "x-amz-target", "x-amz-date", ACCOUNT_HEADER)


@dataclass(frozen=True)
class RecordedRequest:
    """A request and its number in the ledger."""

    number: int
    request: HttpRequest


class Recording:
    """A journal of requests; they hold passwords of databases."""

    def __init__(self, file: Path) -> None:
        self._journal = JsonLines(file)

    def append(self, number: int, request: HttpRequest) -> None:
        """Write a request to the disk."""
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
        body = base64.b64encode(request.body).decode("ascii")
        self._journal.append(
            {"number": number, **asdict(request), "headers": headers, "body": body}
        )

    def clear(self) -> None:
        """Forget all of them."""
        self._journal.clear()

    def requests(self) -> Iterator[RecordedRequest]:
        """All, oldest first."""
        for item in self._journal.items():
            body = base64.b64decode(item.pop("body"))
            yield RecordedRequest(item.pop("number"), HttpRequest(**item, body=body))
