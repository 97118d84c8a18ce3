"""Errors of API servers, with method, path and the server's message."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Any

import urllib3.exceptions

from k8s_ucp.errors import UcpError


class KubeError(UcpError):
    """An API server refused or failed a request. status: HTTP code; 0 without a response."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


class NotFound(KubeError):
    """The object, or its kind, does not exist."""


class Conflict(KubeError):
    """The object exists, changed since it was read, or another manager owns a field (409)."""


class Forbidden(KubeError):
    """The identity is known, but lacks the permission (403)."""


class Unauthorized(KubeError):
    """The credential is not accepted (401): expired, revoked or wrong."""


class Invalid(KubeError):
    """The server refused the content (400, 422)."""


class Expired(KubeError):
    """The resource version is too old to watch from (410): list again."""


class Unreachable(KubeError):
    """No response (refused, timeout, TLS failure), or the server is failing (5xx, 429)."""


class TooLarge(Unreachable):
    """The response is larger than the connection accepts."""


LONGEST_MESSAGE = 1_000
"""Characters kept of a server's message, which ends up in logs and conditions."""

_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Unreachable,
}


def refusal(method: str, path: str, status: Any, answer: Any) -> KubeError:
    """The error for a response of 400 and above. answer: its body, usually a Status."""
    status = status if isinstance(status, int) else 0
    reason, message = (
        str(answer.get(each) or "")[:LONGEST_MESSAGE] if isinstance(answer, dict) else ""
        for each in ("reason", "message")
    )
    kind = _BY_STATUS.get(status) or (Unreachable if status >= 500 else KubeError)
    text = f"{method} {path}: {status} {message or reason or 'no message'}"
    return kind(text, status=status, reason=reason)


def plain(error: BaseException, seconds: float) -> str:
    """Why there was no response, in plain words. seconds: the timeout of the request."""
    for each in _causes(error):
        for kind, words in _WORDS:
            if isinstance(each, kind):
                time = f"within {seconds:g} s" if seconds else "in time"
                return words.format(time=time, said=_text_of(each))
    return _text_of(error)


def _causes(error: BaseException) -> list[BaseException]:
    """Causes of an error, the innermost first: libraries wrap the system's error."""
    found: list[BaseException] = []
    todo: list[object] = [error]
    while todo:
        each = todo.pop(0)
        if isinstance(each, BaseException) and each not in found:
            found.append(each)
            todo += [getattr(each, "reason", None), each.__cause__, each.__context__, *each.args]
    return found[::-1]


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted: {said}"),
    (ssl.SSLError, "no TLS connection: {said}"),
    (socket.gaierror, "its host name can't be resolved: {said}"),
    # First, since it is also a ConnectionResetError.
    (http.client.RemoteDisconnected, "it closed the connection without a response"),
    (ConnectionRefusedError, "connection refused"),
    (ConnectionResetError, "the connection was reset"),
    (BrokenPipeError, "the connection was reset"),
    (http.client.IncompleteRead, "it closed the connection during the response"),
    (TimeoutError, "no response {time}"),
    (urllib3.exceptions.TimeoutError, "no response {time}"),
)


def _text_of(error: BaseException) -> str:
    """The text of an error without the object addresses that urllib3 adds."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "not trusted"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error) or type(error).__name__
    return text.split("object at 0x")[-1].split(">: ")[-1].split(">, ")[-1].strip("'\")")
