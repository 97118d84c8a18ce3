"""What a step would do: the lines that `--plan` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["create", "change", "keep", "delete", "wait"]


@dataclass(frozen=True)
class PlannedChange:
    """What a step would do to one object."""

    action: Action
    object: str
    reason: str
    lost: str = ""
    """Description of the data that would be lost for good."""
