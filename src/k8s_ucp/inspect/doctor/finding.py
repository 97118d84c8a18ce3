"""A finding: one problem that `ucp doctor` reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One problem.

    id: kind and object, stable while the problem persists.
    """

    id: str
    severity: Severity
    message: str
    next: str
    """The command or the edit that solves the problem."""
    fix: str = ""
    """What `ucp doctor --fix` does about it; empty if the user has to decide."""

    def data(self) -> dict[str, str]:
        return asdict(self)
