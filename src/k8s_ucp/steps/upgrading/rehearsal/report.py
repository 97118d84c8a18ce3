"""The findings of a rehearsal, as data and in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.steps.upgrading.rehearsal.comparison import CopyDifference

SHOWN = 10
NOTHING = CopyDifference((), (), (), (), ())


@dataclass
class Findings:
    """Filled in during the rehearsal."""

    moves: list[dict[str, str]] = field(default_factory=list)
    """part, tool, from, to."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Kind -> number of objects on the copy before the upgrade."""
    unhealthy: str = ""
    """Why the control plane is not healthy with the newer programs."""
    refused: list[str] = field(default_factory=list)
    """Newer CRDs that the API server rejects, with its messages."""
    in_use: list[str] = field(default_factory=list)
    """APIs in use on the real core that the newer Kubernetes has removed."""
    difference: CopyDifference | None = None
    """None if the comparison was not reached."""
    one_way: list[str] = field(default_factory=list)
    """What a rollback can't restore, in words."""
    warnings: list[str] = field(default_factory=list)
    """Warnings of the API server."""
    stored: list[str] = field(default_factory=list)
    """Versions in which objects may be stored after the upgrade."""
    seconds: float = 0.0
    peak_megabytes: int = 0

    def problems(self) -> list[str]:
        """What would fail, in words."""
        seen = self.difference or NOTHING
        unhealthy = (
            [f"the control plane is not healthy: {self.unhealthy}"] if self.unhealthy else []
        )
        return [
            *unhealthy,
            *(f"refused: {each}" for each in self.refused),
            *(f"lost: {each}" for each in seen.lost),
            *(f"changed: {each}" for each in seen.changed),
            *(f"no longer served: {each}" for each in self.removed_apis()),
        ]

    def removed_apis(self) -> list[str]:
        """Removed APIs that are in use."""
        seen = self.difference or NOTHING
        return sorted({*seen.removed_kinds, *seen.removed_versions, *self.in_use})

    def data(self, topology: str) -> dict[str, Any]:
        """The output of `ucp upgrade --rehearse -o json`."""
        seen = self.difference or NOTHING
        return {
            "topology": topology,
            "well": not self.problems(),
            "moves": self.moves,
            "objects": sum(self.counts.values()),
            "kinds": dict(sorted(self.counts.items())),
            "compared": self.difference is not None,
            "lost": list(seen.lost),
            "changed": list(seen.changed),
            "gone": self.removed_apis(),
            "goneUnused": list(seen.unused),
            "refused": self.refused,
            "unhealthy": self.unhealthy,
            "storedVersions": self.stored,
            "oneWay": self.one_way,
            "warnings": self.warnings,
            "seconds": round(self.seconds, 1),
            "peakMegabytes": self.peak_megabytes,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Rows of the table: (subject, result on the copy)."""
        seen = self.difference
        objects = f"{sum(self.counts.values())} of {len(self.counts)} kinds"
        compared = f"{len(seen.lost)} lost, {len(seen.changed)} changed" if seen else "not compared"
        rows = [
            (each["part"], f"{each['tool']} {each['from']} to {each['to']}") for each in self.moves
        ]
        rows += [
            ("objects", f"{objects}: {compared}"),
            ("newer kinds", f"{len(self.refused)} refused"),
            ("APIs", f"{len(self.removed_apis())} in use are removed" if seen else "not compared"),
        ]
        if any(each["part"] == "core" for each in self.moves):
            rows.append(("control plane", "NOT HEALTHY" if self.unhealthy else "healthy"))
        return rows

    def lists(self) -> dict[str, Sequence[str]]:
        """Heading -> lines below the table."""
        seen = self.difference or NOTHING
        return {
            "problems": self.problems(),
            "lost for good": self.one_way,
            "versions that objects may be stored in from then on": self.stored,
            "warnings of the API server": self.warnings,
            "no longer served, and not in use": seen.unused,
        }


def shortened(lines: Sequence[str]) -> list[str]:
    """The first SHOWN lines; `-o json` has all."""
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"and {more} more; see -o json"] if more > 0 else [])]
