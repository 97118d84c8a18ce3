"""Abandoned resources: they could not be deleted, and may still exist and be billed.

The core no longer has them; this file beside its state lists them for status and doctor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import write_private_json
from k8s_ucp.workspace.records import parse_json, record_of


@dataclass(frozen=True)
class AbandonedResource:
    """what: a description with its name in its cloud. error: its last error. since: RFC 3339."""

    what: str
    error: str
    since: str
    uid: str = ""
    """UID of its object; empty if there was no object."""
    names: Sequence[str] = ()
    """Names by which `--abandon` accepts it."""

    @property
    def known_by(self) -> Sequence[str]:
        """The names; for records of an earlier version, the words of the description."""
        return self.names or self.what.split()

    def data(self) -> dict[str, str]:
        """Data for `-o json`."""
        return {"object": self.what, "error": self.error, "since": self.since}


class AbandonedRecord:
    """The abandoned resources of one topology."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def resources(self) -> list[AbandonedResource]:
        """Oldest first. Raises UcpError if the file is damaged."""
        try:
            found = parse_json(self._path.read_text("utf-8"))
            return [record_of(AbandonedResource, each) for each in found]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise UcpError(
                f"{self._path}, the record of abandoned resources, is corrupt",
                next="look in the clouds' consoles for what is left, then: "
                + command_line("rm", self._path),
            ) from error

    def add(self, found: Iterable[AbandonedResource]) -> None:
        """Record resources in addition to the existing ones. Raises UcpError.

        A resource can be abandoned again if a start created a new object for it; its record is
        replaced.
        """
        known = {each.what: each for each in self.resources()}
        for each in found:
            if each.what not in known or each.uid not in ("", known[each.what].uid):
                known.pop(each.what, None)
                known[each.what] = each
        write_private_json(self._path, list(known.values()))
