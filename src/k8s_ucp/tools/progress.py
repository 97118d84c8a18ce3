"""How far an installation is, told through a callback: this room writes to no terminal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What happens to a tool, in this order: a release is downloaded, sources are compiled."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    MODULES = "fetching modules"
    COMPILING = "compiling"
    INSTALLED = "installed"


@dataclass(frozen=True)
class ToolProgress:
    """One tool's state; elapsed: seconds since its installation began."""

    tool: str
    version: str
    phase: Phase
    elapsed: float
    detail: str = ""
