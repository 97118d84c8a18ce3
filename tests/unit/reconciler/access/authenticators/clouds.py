"""Fake clouds for the authenticators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class NoCloud:
    """Fails on any request."""

    def credential(self, cloud: str) -> str:
        raise AssertionError(f"the credential of {cloud} was asked for")

    def fetch(self, url: str, **_: Any) -> dict[str, Any]:
        raise AssertionError(f"{url} was asked")

    def send(self, method: str, url: str, *_: Any, **__: Any) -> tuple[int, bytes]:
        raise AssertionError(f"{method} {url} was asked")

    def remembered(self, key: str, take: Callable[[], tuple[str, float]]) -> str:
        return take()[0]

    def now(self) -> float:
        return 0.0


@dataclass
class Answering(NoCloud):
    """Has one credential, and gives the same response to every request."""

    text: str
    answer: dict[str, Any] = field(default_factory=dict)
    at: float = 1_700_000_000.0
    asked: list[tuple[str, Mapping[str, str] | None, str]] = field(default_factory=list)

    def credential(self, cloud: str) -> str:
        return self.text

    def fetch(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> dict[str, Any]:
        self.asked.append((url, form, bearer))
        return self.answer

    def now(self) -> float:
        return self.at
