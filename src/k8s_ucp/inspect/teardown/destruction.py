"""Progress of a topology's destruction, recorded beside its state until the next start.

It is recorded when the clouds were verified to be empty, because only the core can verify that and
it is stopped next; a core that was stopped on purpose is not a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp.errors import some_of
from k8s_ucp.workspace import write_private_json
from k8s_ucp.workspace.records import parse_json


@dataclass(frozen=True)
class Destruction:
    """at: RFC 3339. kept: descriptions of what a stopped core cluster with data still manages."""

    at: str
    kept: Sequence[str] = ()
    ended: bool = True
    """False: the clouds were verified to be empty except for `kept`, but the core still exists."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """Results of the verification for the run that completes it, by names in its context."""

    def message(self, topology: str) -> str:
        """What happened to it, in one sentence."""
        kept = f", but for what its core cluster manages: {some_of(self.kept)}" if self.kept else ""
        if self.ended:
            return f"{topology} was destroyed at {self.at}{kept}"
        return (
            f"{topology} is partly destroyed: its clouds were verified to be empty at "
            f"{self.at}{kept}"
        )

    @property
    def next(self) -> str:
        """The next command."""
        return "ucp start creates it again" if self.ended else "ucp destroy finishes it"


def read_destruction(path: Path) -> Destruction | None:
    """None if there was none, or a start since; a damaged file is ignored."""
    try:
        found = parse_json(path.read_text("utf-8"))
        kept, told = tuple(map(str, found["kept"])), dict(found["told"])
        return Destruction(str(found["at"]), kept, bool(found["ended"]), told)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def note_destruction(path: Path, found: Destruction) -> None:
    """Record it. Raises UcpError."""
    write_private_json(path, found)
