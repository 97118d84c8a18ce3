"""A finding: one thing that is not as it should be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    id: names its kind and object, and stays the same while the trouble lasts.
    """

    id: str
    severity: Severity
    message: str
    next: str
    """The command or the edit that gets the user on."""
    fix: str = ""
    """What `ucp doctor --fix` does about it; empty where a person has to decide."""

    def data(self) -> dict[str, str]:
        return asdict(self)
