"""What an API server refuses or fails at, in our words: method, path and the server's message."""

from __future__ import annotations

from typing import Any

from k8s_ucp.errors import UcpError


class KubeError(UcpError):
    """An API server refused or failed a request. status: HTTP code, 0 where none came back."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


class NotFound(KubeError):
    """The object, or its kind, does not exist."""


class Conflict(KubeError):
    """It exists already, or changed since it was read, or another manager owns a field."""


class Forbidden(KubeError):
    """Known identity, not allowed (403)."""


class Unauthorized(KubeError):
    """The credential is not accepted (401): expired, revoked or wrong."""


class Invalid(KubeError):
    """The server refused the content (400, 422)."""


class Expired(KubeError):
    """The resource version is too old to watch from (410): list again."""


class Unreachable(KubeError):
    """No answer: refused, timed out, TLS failure, or the server is failing (5xx, 429)."""


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


def refusal(method: str, path: str, status: int, answer: Any) -> KubeError:
    """What an answer of 400 and above means. answer: its body, a Status as a rule."""
    reason = answer.get("reason", "") if isinstance(answer, dict) else ""
    message = answer.get("message", "") if isinstance(answer, dict) else ""
    kind = _BY_STATUS.get(status) or (Unreachable if status >= 500 else KubeError)
    text = f"{method} {path}: {status} {message or reason or 'no message'}"
    return kind(text, status=status, reason=reason)


def plain(error: BaseException) -> str:
    """The innermost reason, without the object addresses urllib3 puts around it."""
    reason = getattr(error, "reason", None)
    text = str(reason if reason is not None else error) or type(error).__name__
    return text.split("object at 0x")[-1].split(">: ")[-1].split(">, ")[-1].strip("'\")")
