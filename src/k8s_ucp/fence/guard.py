"""The guard: checks periodically whether this core holds the fence, and stops its writers if not.

It only reads the repository. Its permits expire by themselves, so writers that ask (`Gate`) stop in
time whatever happens to the guard; it stops those that can't ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles, FencePermit, FenceSettings, boot_clock, boot_id
from k8s_ucp.fence.record import FENCE, FenceRecord
from k8s_ucp.fence.rules import NEVER, FenceVerdict, FenceView, decide, until, wait_of
from k8s_ucp.git.local_refs import local_folder, read_ref

LOOKS = 3
"""Reads per period; each may take this part of the period at most."""
TICK_SECONDS = 1.0


class Writers(Protocol):
    """Programs that write to clouds and app clusters, and can't ask the Gate themselves."""

    def stop(self) -> list[str]:
        """Stop those that are running; returns their names. Raises UcpError."""

    def resume(self) -> list[str]:
        """Start those that `stop` has stopped; returns their names. Raises UcpError."""


Look = Callable[[FenceSettings, float], tuple[str, FenceRecord] | None]
"""(settings, timeout in seconds): the current (commit, record), None if there is no fence. Raises
UcpError."""


class Guard:
    """The guard of one topology, on the machine of its core. Called from one thread."""

    def __init__(
        self,
        files: FenceFiles,
        writers: Writers,
        report: Callable[[str], None],
        *,
        look: Look | None = None,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self._files, self._writers, self._report, self._clock = files, writers, report, clock
        self._look = look or Reader(files).look
        self._boot = boot_id()
        self._settings: FenceSettings | None = None
        self._record: FenceRecord | None = None
        self._confirmed = NEVER
        self._next = NEVER
        self._reported = ""
        self._verdict: FenceVerdict | None = None
        self._stopped = 0.0
        self._resumed = False
        self._written: FencePermit | None = None
        self._ever = False

    def tick(self) -> FenceVerdict | None:
        """Read the fence if it is due, and act on it; None if there are no settings."""
        settings = self._files.settings()
        if settings is None:
            if self._settings is not None and not self._files.guarded():
                self._report(f"stopped working: {self._files.folder} was moved or deleted")
            self._settings = None
            return None
        if settings != self._settings:
            self._begin(settings)
        now = self._clock()
        if now >= self._next:
            self._read_fence(settings, now)
        self._apply(self._view(settings))
        return self._verdict

    def _begin(self, settings: FenceSettings) -> None:
        """Take over new settings: a start has claimed the fence, or this guard replaces another."""
        self._settings, self._record, self._next = settings, settings.record, NEVER
        permit = self._files.permit()
        self._ever = bool(permit and permit.confirmed)
        stands = permit and permit.allows(self._clock(), self._boot)
        if permit and stands and permit.record == settings.record:
            self._confirmed = permit.until - settings.period
        else:
            self._confirmed = NEVER

    def _read_fence(self, settings: FenceSettings, now: float) -> None:
        """Read the fence, with a timeout so that the caller isn't blocked for long."""
        part = settings.period / LOOKS
        self._next = now + part
        try:
            found = self._look(settings, part)
        except UcpError as error:
            problem = error.message.splitlines()[0]
        else:
            problem = "" if found else "the core repository has no fence"
            self._record = found[1] if found else self._record
            if found and found[1].is_held_by(settings.id):
                self._confirmed, self._ever = now, True
        if problem and problem != self._reported:
            self._report(f"the fence is not confirmed: {problem}")
        self._reported = problem

    def _view(self, settings: FenceSettings) -> FenceView:
        now = self._clock()
        left = 0.0
        if self._record and self._record != settings.record:
            # Our takeover is in the repository, but its start has not written the settings yet.
            left = wait_of(self._record, period=settings.period, now=time.time())
        earliest = settings.not_before if settings.boot == self._boot else 0.0
        return FenceView(
            id=settings.id,
            record=self._record,
            confirmed=self._confirmed,
            now=now,
            period=settings.period,
            not_before=max(earliest, now + left if left else 0.0),
            # If only `ucp start` can read the repository, with a token of its caller, then a
            # failure to read it means nothing.
            stops_when_silent=settings.stops_when_silent and self._ever,
        )

    def _apply(self, seen: FenceView) -> None:
        before, self._verdict = self._verdict, decide(seen)
        works = self._verdict is FenceVerdict.HELD
        if self._verdict is not before:
            self._stopped = 0.0 if works else time.time()
            self._report(f"the fence is {self._verdict}: {self._record}")
        # Permit first: writers that ask stop at once, and none resumes before the permit exists.
        try:
            self._permit(seen)
        finally:
            if not works:
                self._set_writers(works=False)
        if works and not self._resumed:
            self._set_writers(works=True)

    def _set_writers(self, *, works: bool) -> None:
        self._resumed = False
        names = self._writers.resume() if works else self._writers.stop()
        self._resumed = works
        if names:
            self._report(f"{'started' if works else 'stopped'}: {', '.join(names)}")

    def _permit(self, seen: FenceView) -> None:
        """Write the permit if its content is new, or it is extended enough; not with every tick."""
        assert self._verdict is not None
        permit = FencePermit(
            verdict=self._verdict,
            until=until(seen) if self._verdict is FenceVerdict.HELD else 0.0,
            boot=self._boot,
            record=self._record,
            confirmed=self._ever,
            said=self._reported,
            stopped=self._stopped,
        )
        old = self._written
        longer = permit.until - old.until if old else 0.0
        if old and 0 <= longer < seen.period / LOOKS / 2:
            permit = replace(permit, until=old.until)
        if permit != old:
            self._files.write_permit(permit)
            self._written = permit


class Reader:
    """Reads the fence with the credential that a start stored; caches the last record."""

    def __init__(self, files: FenceFiles) -> None:
        self._files = files
        self._known: tuple[str, FenceRecord] | None = None

    def look(self, settings: FenceSettings, seconds: float) -> tuple[str, FenceRecord] | None:
        """See Look."""
        folder = local_folder(settings.url)
        commit = read_ref(folder, FENCE) if folder else None
        known = self._known_by(settings, commit)
        self._known = known or self._read(settings, commit, seconds)
        return self._known

    def _known_by(
        self, settings: FenceSettings, commit: str | None
    ) -> tuple[str, FenceRecord] | None:
        known = (self._known, (settings.commit, settings.record))
        return next((each for each in known if each and each[0] == commit), None)

    def _read(
        self, settings: FenceSettings, commit: str | None, seconds: float
    ) -> tuple[str, FenceRecord] | None:
        # Imported on demand: if the repository is on this machine, reading a file is enough.
        from k8s_ucp.credentials import CredentialRef, load_login
        from k8s_ucp.fence.reference import FenceReference
        from k8s_ucp.git.clones import make_clone, replaceable
        from k8s_ucp.git.environment import ANY_USER, Credential

        credential = None
        if settings.credential:
            name, file = settings.credential
            username, password = load_login(name, CredentialRef(file=Path(file)))
            credential = Credential(username or ANY_USER, password)
        clone = make_clone(self._files.clone, settings.url, credential=credential)
        reference = FenceReference(clone, seconds)
        with replaceable(clone):
            commit = commit or reference.commit()
            if commit is None:
                return None
            return self._known_by(settings, commit) or (commit, reference.record(commit))
