"""Abandoned resources: they could not be deleted, and may still exist and be billed.

The core forgets it; the file beside its state doesn't, and status and doctor list it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file


@dataclass(frozen=True)
class AbandonedResource:
    """what: in words, with its name in its cloud. error: its own last one. since: RFC 3339."""

    what: str
    error: str
    since: str
    uid: str = ""
    """Of its object; empty where there was none to look at."""
    names: Sequence[str] = ()
    """What it may be called by in `--abandon`."""

    @property
    def known_by(self) -> Sequence[str]:
        """The same; of one that an earlier version wrote down, the words that tell what it is."""
        return self.names or self.what.split()

    def data(self) -> dict[str, str]:
        """For `-o json`."""
        return {"object": self.what, "error": self.error, "since": self.since}


class AbandonedRecord:
    """Those of one topology."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def resources(self) -> list[AbandonedResource]:
        """Oldest first. Raises UcpError where the file is damaged."""
        try:
            return [AbandonedResource(**each) for each in json.loads(self._path.read_text("utf-8"))]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise UcpError(
                f"{self._path}, the record of abandoned resources, is corrupt",
                next=f"look in the clouds' consoles for what is left, then: rm '{self._path}'",
            ) from error

    def add(self, found: Iterable[AbandonedResource]) -> None:
        """Write them down; what was written before stays. Raises UcpError.

        The same thing may be given up again with another object, which a start has made of it.
        """
        known = {each.what: each for each in self.resources()}
        for each in found:
            if each.what not in known or each.uid not in ("", known[each.what].uid):
                known.pop(each.what, None)
                known[each.what] = each
        text = json.dumps([asdict(each) for each in known.values()], indent=1)
        write_private_file(self._path, text + "\n")
