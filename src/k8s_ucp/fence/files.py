"""The fence's files in the state folder: input of the guard, and its permit for writers.

Writers on this machine ask `Gate`. A permit expires by itself, even if everything on the machine is
suspended, so a process that was frozen finds it expired when it wakes up.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.record import FenceRecord, parse
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.workspace import make_private_folder, write_private_json, writing
from k8s_ucp.workspace.records import parse_json, record_of

PERIOD = 30.0
"""Seconds without a confirmation after which a core cluster's writers stop."""
LATE_SECONDS = 15.0
"""A guard that has not renewed a permit for so long after its end hangs."""
PERIOD_VARIABLE = "UCP_FENCE_SECONDS"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def period_asked() -> float:
    """PERIOD, or the value that a test sets. It must be the same for all cores of a topology."""
    return float(os.environ.get(PERIOD_VARIABLE) or PERIOD)


def boot_clock() -> float:
    """Seconds of a clock that includes suspend, or outside Linux of the monotonic clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """ID of the current boot; values of `boot_clock` mean nothing in another one."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class FenceSettings:
    """What a start passes to the guard. record, commit: with which this core may act."""

    id: str
    url: str
    """URL of the core repository."""
    period: float
    stops_when_silent: bool
    commit: str
    record: FenceRecord
    boot: str
    not_before: float = 0.0
    """See FenceView; on the boot clock."""
    kubeconfig: str = ""
    """Of a core cluster whose writers are pods; empty if they are processes of this machine."""
    adopted: tuple[str, ...] = ()
    """Components of that core cluster which others run."""
    credential: tuple[str, str] | None = None
    """Name and file of the repository's credential; None: the user's git settings have it."""


@dataclass(frozen=True)
class FencePermit:
    """The guard's decision. until: on the boot clock of `boot`; record: as read last."""

    verdict: FenceVerdict
    until: float
    boot: str
    record: FenceRecord | None
    confirmed: bool
    """Whether the guard itself has ever been able to read the fence."""
    said: str = ""
    """Why the last read failed."""
    stopped: float = 0.0
    """Seconds since 1970 when the writers were stopped."""

    def why_stopped(self) -> str:
        """Why the writers are stopped, for people; empty if they aren't."""
        match self.verdict:
            case FenceVerdict.LOST:
                what = "another core acts for this topology, and this one's writers are stopped"
                return f"{what}: {self.record}"
            case FenceVerdict.SILENT:
                why = self.said or "no answer"
                return f"the writers are stopped until the core repository can be read again: {why}"
            case FenceVerdict.EXPIRED:
                return "the watcher does not renew the permit of this core, so the reconciler waits"
            case FenceVerdict.WAITING:
                return "the writers wait until the core that had the fence has stopped"
            case _:
                return ""

    def allows(self, now: float, boot: str) -> bool:
        return self.verdict is FenceVerdict.HELD and self.boot == boot and now < self.until

    def has_expired(self, now: float, boot: str) -> bool:
        """Whether the guard should have renewed it long ago, also on a machine that is busy."""
        held = self.verdict is FenceVerdict.HELD and self.boot == boot
        return held and now >= self.until + LATE_SECONDS


@dataclass(frozen=True)
class FenceFiles:
    """Files of one topology. folder: private."""

    folder: Path

    @property
    def clone(self) -> Path:
        """Clone of the core repository, only for the fence's ref."""
        return self.folder / "core"

    def settings(self) -> FenceSettings | None:
        """None if no start has written any, or they can't be read."""
        found = _read(self.settings_file)
        if found is None:
            return None
        try:
            record = _record(found.pop("record"))
            found["adopted"] = tuple(found.get("adopted") or ())
            credential = found.pop("credential", None)
            pair = (str(credential[0]), str(credential[1])) if credential else None
            found |= {"record": record, "credential": pair}
            return record_of(FenceSettings, found) if record else None
        except (TypeError, KeyError, IndexError, ValueError):
            return None

    def guarded(self) -> bool:
        """Whether a start has written settings for a guard."""
        return self.settings_file.exists()

    def write_settings(self, settings: FenceSettings) -> None:
        self._write(self.settings_file, settings)

    def permit(self) -> FencePermit | None:
        """None if there is none, or it can't be read."""
        found = _read(self._permit)
        if found is None:
            return None
        try:
            record, verdict = _record(found.pop("record")), FenceVerdict(found.pop("verdict"))
            return record_of(FencePermit, found | {"record": record, "verdict": verdict})
        except (TypeError, KeyError, ValueError):
            return None

    def seen(self, *, guarded: bool) -> FencePermit | None:
        """The permit as it is now. guarded: the guard runs, so it should have renewed it."""
        permit = self.permit()
        if permit and guarded and permit.has_expired(boot_clock(), boot_id()):
            return replace(permit, verdict=FenceVerdict.EXPIRED)
        return permit

    def lost_to(self) -> FenceRecord | None:
        """The current record if the guard found that this core lost the fence, else None."""
        permit = self.permit()
        return permit.record if permit and permit.verdict is FenceVerdict.LOST else None

    def write_permit(self, permit: FencePermit) -> None:
        self._write(self._permit, permit)

    def forget(self) -> None:
        """Remove the guard's files; the next claim makes a new clone."""
        for each in (self.settings_file, self._permit):
            each.unlink(missing_ok=True)
        shutil.rmtree(self.clone, ignore_errors=True)

    @property
    def epoch(self) -> int | None:
        """The epoch with which this core may act; None if no start has claimed one."""
        settings = self.settings()
        return settings.record.epoch if settings else None

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.json"

    @property
    def _permit(self) -> Path:
        return self.folder / "permit.json"

    def _write(self, path: Path, content: FenceSettings | FencePermit) -> None:
        make_private_folder(self.folder)
        with writing(path):
            write_private_json(path, content)


class Gate:
    """Whether writers on this machine may write now. Safe to share between threads."""

    def __init__(
        self,
        folder: Path | None,
        clock: Callable[[], float] = boot_clock,
        *,
        epoch: int | None = None,
    ) -> None:
        """folder: of FenceFiles; None: unguarded. epoch: of the caller; others find it closed."""
        self._files = FenceFiles(folder) if folder else None
        self._epoch = epoch
        self._clock = clock
        self._boot = boot_id()

    def is_open(self) -> bool:
        """Asked before every write; reads the file each time."""
        if self._files is None:
            return True
        if not self._files.guarded():
            # A caller with an epoch had settings: the state folder was moved or deleted since.
            return self._epoch is None
        permit = self._files.permit()
        if permit is None or permit.record is None:
            return False
        ours = self._epoch in (None, permit.record.epoch)
        return ours and permit.allows(self._clock(), self._boot)


UNGUARDED = Gate(None)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = parse_json(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _record(found: Any) -> FenceRecord | None:
    if found is None:
        return None
    try:
        return parse(json.dumps(found).encode())
    except UcpError:
        return None
