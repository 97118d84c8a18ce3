"""What a step would do: the lines of `--plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["create", "change", "keep", "delete", "wait"]


@dataclass(frozen=True)
class Foreseen:
    """What a step would do to one object."""

    action: Action
    object: str
    reason: str
    lost: str = ""
    """Data that would be lost for good, in words."""
