"""How far a topology is destroyed: noted beside its state, until a start.

From when its clouds were seen empty on, the core ends, which alone could say so again; and once it
has ended, its silence is no failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp.errors import some_of
from k8s_ucp.workspace import write_private_file


@dataclass(frozen=True)
class Destruction:
    """at: RFC 3339. kept: in words, what a core cluster that is stopped with its data manages."""

    at: str
    kept: Sequence[str] = ()
    ended: bool = True
    """False: the clouds were seen empty but for what is kept, and no more."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What was seen then and the run that ends it tells, by the names of its context."""

    def words(self, topology: str) -> str:
        """What became of it, without a stop."""
        kept = f", but for what its core cluster manages: {some_of(self.kept)}" if self.kept else ""
        if self.ended:
            return f"{topology} was destroyed at {self.at}{kept}"
        return f"{topology} is half destroyed: its clouds were seen empty at {self.at}{kept}"

    @property
    def next(self) -> str:
        """What to type."""
        return "ucp start creates it anew" if self.ended else "ucp destroy finishes it"


def read_destruction(path: Path) -> Destruction | None:
    """None where there was none, or a start since; a damaged file says nothing."""
    try:
        found = json.loads(path.read_text("utf-8"))
        kept, told = tuple(map(str, found["kept"])), dict(found["told"])
        return Destruction(str(found["at"]), kept, bool(found["ended"]), told)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def note_destruction(path: Path, found: Destruction) -> None:
    """Raises UcpError."""
    write_private_file(path, json.dumps(asdict(found), indent=1) + "\n")
