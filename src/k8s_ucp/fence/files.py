"""The fence's files in the state folder: input of the guard, and its permission for writers.

Writers on this machine ask `Gate`. A permit ends by itself, also while everything here stands
still, so a process that was frozen finds it ended when it wakes up.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.record import FenceRecord, parse
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.workspace import make_private_folder, write_private_file

PERIOD = 30.0
"""Seconds without a confirmation after which a core's writers stop."""
PERIOD_VARIABLE = "UCP_FENCE_SECONDS"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def period_asked() -> float:
    """PERIOD, or what a test says. All cores of a topology have to have the same."""
    return float(os.environ.get(PERIOD_VARIABLE) or PERIOD)


def boot_clock() -> float:
    """Seconds of a clock that goes on while the machine sleeps; elsewhere than on Linux the
    monotonic one does.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """Of this run of the machine: what `boot_clock` says means nothing in another."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class FenceSettings:
    """What a start tells the guard. record, commit: with which this core may act."""

    id: str
    url: str
    """Of the core repository."""
    period: float
    stops_when_silent: bool
    commit: str
    record: FenceRecord
    boot: str
    not_before: float = 0.0
    """By the boot clock: as of FenceView."""
    kubeconfig: str = ""
    """Of a core whose writers are pods; empty where they are processes of this machine."""
    adopted: tuple[str, ...] = ()
    """Components of that core that others run."""
    credential: tuple[str, str] | None = None
    """Name and file of what lets us read the repository; None: the user's own git settings do."""


@dataclass(frozen=True)
class FencePermit:
    """What the guard says. until: by the boot clock of that boot; record: as it was read last."""

    verdict: FenceVerdict
    until: float
    boot: str
    record: FenceRecord | None
    confirmed: bool
    """The guard itself could read the fence, this time or earlier."""
    said: str = ""
    """Why the last look failed."""
    stopped: float = 0.0
    """Seconds since 1970: when the writers stopped."""

    def why_stopped(self) -> str:
        """Why the writers don't work, for a person; empty where they do."""
        match self.verdict:
            case FenceVerdict.LOST:
                what = "another core acts for this topology, and this one's writers are stopped"
                return f"{what}: {self.record}"
            case FenceVerdict.SILENT:
                why = self.said or "no answer"
                return f"the writers are stopped until the core repository can be read again: {why}"
            case FenceVerdict.WAITING:
                return "the writers wait until the core that had the fence has stopped"
            case _:
                return ""

    def allows(self, now: float, boot: str) -> bool:
        return self.verdict is FenceVerdict.HELD and self.boot == boot and now < self.until


@dataclass(frozen=True)
class FenceFiles:
    """folder: private, of one topology."""

    folder: Path

    @property
    def clone(self) -> Path:
        """Of the core repository, for this ref alone."""
        return self.folder / "core"

    def settings(self) -> FenceSettings | None:
        """None where no start has written any that can be read."""
        found = _read(self.settings_file)
        if found is None:
            return None
        try:
            record = _record(found.pop("record"))
            found["adopted"] = tuple(found.get("adopted") or ())
            credential = found.pop("credential", None)
            pair = (str(credential[0]), str(credential[1])) if credential else None
            return FenceSettings(**found, record=record, credential=pair) if record else None
        except (TypeError, KeyError):
            return None

    def guarded(self) -> bool:
        """A start has told a guard what to look at."""
        return self.settings_file.exists()

    def write_settings(self, settings: FenceSettings) -> None:
        self._write(self.settings_file, settings)

    def permit(self) -> FencePermit | None:
        """None where there is none that can be read."""
        found = _read(self._permit)
        if found is None:
            return None
        try:
            record, verdict = _record(found.pop("record")), FenceVerdict(found.pop("verdict"))
            return FencePermit(**found, record=record, verdict=verdict)
        except (TypeError, KeyError, ValueError):
            return None

    def lost_to(self) -> FenceRecord | None:
        """What the fence says where the guard has seen that this core lost it."""
        permit = self.permit()
        return permit.record if permit and permit.verdict is FenceVerdict.LOST else None

    def write_permit(self, permit: FencePermit) -> None:
        self._write(self._permit, permit)

    def forget(self) -> None:
        """Nobody guards this topology here any more. The next claim clones anew, in one piece."""
        for each in (self.settings_file, self._permit):
            each.unlink(missing_ok=True)
        shutil.rmtree(self.clone, ignore_errors=True)

    @property
    def epoch(self) -> int | None:
        """With which this core may act; None where no start has claimed any."""
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
        try:
            write_private_file(path, json.dumps(asdict(content), indent=1) + "\n")
        except OSError as error:
            raise UcpError(f"failed to write {path}: {error.strerror}") from error


class Gate:
    """Whether writers of this machine may write now. Safe to share between threads."""

    def __init__(
        self,
        folder: Path | None,
        clock: Callable[[], float] = boot_clock,
        *,
        epoch: int | None = None,
    ) -> None:
        """folder: as of FenceFiles; None: nothing guards them. epoch: the one that they call with;
        it stays closed for any other.
        """
        self._files = FenceFiles(folder) if folder else None
        self._epoch = epoch
        self._clock = clock
        self._boot = boot_id()

    def is_open(self) -> bool:
        """Asked before every write: the file is read anew each time."""
        if self._files is None or not self._files.guarded():
            return True
        permit = self._files.permit()
        if permit is None or permit.record is None:
            return False
        ours = self._epoch in (None, permit.record.epoch)
        return ours and permit.allows(self._clock(), self._boot)


UNGUARDED = Gate(None)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
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
