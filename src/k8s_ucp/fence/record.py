"""The record of the fence in the core repository, and the rules for the next one. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from k8s_ucp.errors import UcpError, command_line

FENCE = "refs/ucp/fence"
FILE = "fence.json"
"""Name of the file in the commit that the ref points to."""
PERIODS = 2
"""Periods that a takeover waits: the previous core stops within one and a third."""


@dataclass(frozen=True)
class FenceHolder:
    """A core that may hold the fence. id: of its workspace, for this topology."""

    id: str
    machine: str
    workspace: str
    provider: str

    def run_there(self, command: str) -> str:
        """Advice to run a command in this core's workspace."""
        flag = command_line("--workspace", self.workspace)
        return f"on machine {self.machine}: {command} {flag}"


@dataclass(frozen=True)
class FenceRecord:
    """Which core may act. epoch: incremented with every new holder.

    holder: None once it is released. since: seconds since 1970, by the holder's clock. taken: the
    previous holder did not release it, so it may have written for a while after.
    """

    epoch: int
    holder: FenceHolder | None
    since: float
    taken: bool = False

    def is_held_by(self, id: str) -> bool:
        return self.holder is not None and self.holder.id == id

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if self.holder is None:
            return f"no holder since {when} (epoch {self.epoch})"
        who = self.holder
        holder = f"workspace {who.workspace} on machine {who.machine} ({who.provider} core)"
        return f"{holder} since {when} (epoch {self.epoch})"


class FenceHeld(UcpError):
    """Another core holds the fence."""


def dump(record: FenceRecord) -> bytes:
    """The content of the file."""
    return (json.dumps(asdict(record), indent=1) + "\n").encode()


def parse(content: bytes) -> FenceRecord:
    """Parse what `dump` writes. Raises UcpError for anything else."""
    try:
        found = json.loads(content)
        holder = found["holder"] and FenceHolder(
            *(str(found["holder"][each]) for each in ("id", "machine", "workspace", "provider"))
        )
        record = FenceRecord(
            int(found["epoch"]), holder or None, float(found["since"]), bool(found["taken"])
        )
        str(record)  # Fails for impossible dates: anyone who can push may write any number.
        return record
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError) as error:
        raise UcpError(
            f"the fence of the core repository ({FENCE}, {FILE}) can't be read",
            next="use the version of ucp that wrote it",
        ) from error


def claimed(
    found: FenceRecord | None, holder: FenceHolder, now: float, *, takeover: bool = False
) -> FenceRecord:
    """The record with which `holder` may act: of the same epoch if it already holds the fence.

    Its workspace may have been moved since. Raises FenceHeld if another core holds it, unless
    takeover is set.
    """
    if found is None:
        return FenceRecord(1, holder, now)
    if found.is_held_by(holder.id):
        return replace(found, holder=holder)
    if found.holder is not None and not takeover:
        there = found.holder.run_there("ucp stop")
        raise FenceHeld(
            f"another core acts for this topology: {found}",
            next=f"{there}; if it is gone for good: ucp start --takeover",
        )
    return FenceRecord(found.epoch + 1, holder, now, taken=found.holder is not None)


def released(found: FenceRecord | None, id: str, now: float) -> FenceRecord | None:
    """The record that releases the fence; None if `id` doesn't hold it."""
    if found is None or not found.is_held_by(id):
        return None
    return FenceRecord(found.epoch, None, now)
