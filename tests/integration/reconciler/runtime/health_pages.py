"""Pages of the reconciler's health server."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen


def page(port: int | None, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
