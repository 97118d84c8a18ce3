"""Installs missing tools in parallel, each in the first way that works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.tools.build import Builder, OnProgress, copy_wheel, describe, require_room
from k8s_ucp.tools.download import NotReached, NotServed
from k8s_ucp.tools.fetch import REACH_SECONDS, ReleaseFetcher, out_of_reach
from k8s_ucp.tools.forecast import Forecast
from k8s_ucp.tools.go.build_failures import no_room
from k8s_ucp.tools.go.compiler import find_compiler, module_source, require_compiler
from k8s_ucp.tools.recipe import Phase, Recipe, ToolProgress, needed_compiler
from k8s_ucp.tools.releases.locks import COMMITTED, ReleaseLocks
from k8s_ucp.tools.store import StoreEntry, ToolStore, end_orphans, remove

SIDE_BY_SIDE = 2
"""Parallel builds. `go build` uses all cores except while it downloads modules and links."""

REPORT_PAUSE = 0.2
"""Minimum seconds between two reports on one tool within a phase."""


class ParallelInstaller:
    """Creates entries of one store, whose folders exist. The caller protects the build folder."""

    def __init__(
        self,
        store: ToolStore,
        report: Callable[[ToolProgress], None],
        running: process.RunningPrograms,
        *,
        lock_deadline: float,
        locks: Path | None = None,
    ) -> None:
        """report: called from several threads, one call at a time.

        running: lets another thread cancel an installation. locks: a file with the hashes of
        releases instead of the shipped one.
        """
        self._store = store
        self._report = report
        self._report_lock = threading.Lock()
        self._running = running
        self._lock_deadline = lock_deadline
        self._locks = locks
        self._forecast = Forecast({})

    def order(self, missing: Mapping[str, Sequence[Recipe]]) -> dict[str, tuple[Recipe, ...]]:
        """The possible ways to get each tool, in the order in which to try them.

        missing: tool -> all ways to get it. Raises UcpError if a publisher is unreachable and there
        is no other way, or if a compiler or space for builds is missing.
        """
        releases = [way for ways in missing.values() for way in ways if way.assets]
        lacking: Mapping[str, str] = {}
        if releases:
            lacking = out_of_reach(releases, module_source(find_compiler()))
        order = {
            # A release takes seconds, a build minutes.
            name: tuple(
                sorted(
                    (way for way in ways if not (way.assets and name in lacking)),
                    key=lambda way: not way.assets,
                )
            )
            for name, ways in missing.items()
        }
        if lost := [name for name, ways in order.items() if not ways]:
            raise UcpError(
                f"{', '.join(sorted({lacking[each] for each in lost}))} did not "
                f"respond within {REACH_SECONDS:g} s; needed to download "
                f"{', '.join(lost)}",
                next=(
                    "check the network (HTTPS_PROXY sets a proxy), or build from sources: "
                    "tools.source: sources in ucp.yaml, or ucp tools install --source "
                    "sources"
                ),
            )
        self._builder([ways[0] for ways in order.values() if ways[0].is_built])
        return order

    def _builder(self, recipes: Sequence[Recipe]) -> Builder | None:
        """A builder for the recipes; None if there are none.

        Raises UcpError if a compiler or space is missing.
        """
        folders = [each.module_folder for each in recipes if each.module_folder]
        if not folders:
            return None
        compiler = require_compiler(max(map(needed_compiler, folders)))
        if not self._store.build.exists():  # an interrupted build has used its space already
            require_room(
                self._store.cache, {each.tool.name: each.tool.megabytes for each in recipes}
            )
        return Builder(compiler, module_source(compiler), self._store, self._running)

    def _fetcher(self) -> ReleaseFetcher:
        locks = ReleaseLocks(self._store.cache, self._locks or COMMITTED)
        return ReleaseFetcher(self._store, locks, module_source(find_compiler()), self._running)

    def install_all(self, order: Mapping[str, tuple[Recipe, ...]]) -> dict[str, StoreEntry]:
        """Install all; the first failure, or Ctrl-C, cancels the others."""
        self._forecast = Forecast(
            {name: ways[0].tool.kilobytes for name, ways in order.items() if ways[0].is_built}
        )
        with ThreadPoolExecutor(SIDE_BY_SIDE, "install") as pool:
            try:
                # A job runs as soon as it is submitted, and Ctrl-C may follow at once.
                jobs = {pool.submit(self._one, each): name for name, each in order.items()}
                done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
                # Only the first failure is reported; the others are its consequence.
                return {jobs[job]: job.result() for job in done}
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._running.end()
                raise

    def _one(self, order: tuple[Recipe, ...]) -> StoreEntry:
        """Try the ways in order. A wrong hash is not retried in another way."""
        since = time.monotonic()
        for way in order[:-1]:
            try:
                return self._install(way, since)
            except (NotReached, NotServed, DeadlineExceeded) as error:
                if self._running.ended:
                    raise
                self._reporter(way, since)(
                    Phase.WAITING, f"{error.message}; building it from sources instead"
                )
        return self._install(order[-1], since)

    def _install(self, recipe: Recipe, since: float) -> StoreEntry:
        builder = self._builder([recipe]) if recipe.is_built else None
        compiler = builder.compiler if builder else None
        name = recipe.entry_name(compiler)
        report = self._reporter(recipe, since)

        def waiting(pid: str) -> None:
            report(Phase.WAITING, f"process {pid} is installing it")
            if self._running.ended:
                raise UcpError(f"timed out waiting for process {pid} to install {recipe.tool.name}")

        with self._store.lock(name, self._lock_deadline, waiting):
            entry = self._store.get(name)
            if entry is None:
                partial = self._store.new_partial(name, end_orphans)
                try:
                    if builder:
                        folder = builder.build(recipe, name, partial, report)
                    elif recipe.assets:
                        folder = self._fetcher().fetch(recipe, name, partial, report)
                    else:
                        folder = partial
                        copy_wheel(recipe, folder)
                    entry = describe(recipe, name, compiler, since, folder)
                    self._store.publish(entry, folder)
                except OSError as error:
                    raise no_room(
                        f"failed to write {recipe.tool.name} to {self._store.cache}: "
                        f"{error.strerror}"
                    ) from error
                finally:
                    remove(partial)
        report(Phase.INSTALLED, "")
        return entry

    def _reporter(self, recipe: Recipe, since: float) -> OnProgress:
        """A callback that reports a tool's changes of phase, and details every REPORT_PAUSE."""
        last: list[tuple[Phase, float]] = []

        def report(phase: Phase, detail: str, kilobytes: int = 0) -> None:
            now = time.monotonic()
            if last and last[0][0] == phase and now - last[0][1] < REPORT_PAUSE:
                return
            last[:] = [(phase, now)]
            progress = ToolProgress(
                recipe.tool.name, recipe.version, phase, now - since, detail, kilobytes
            )
            with self._report_lock:
                self._forecast.note(progress, now)
                self._report(replace(progress, left=self._forecast.left(now)))

        return report
