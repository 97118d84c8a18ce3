"""Install the pinned programs into the user's cache, and find them there.

One call does everything: `Installer(cache, report).install(EMBEDDED)` returns a Toolbox at once
where all is installed, and else builds what is missing, side by side, safe against other installs
at the same time and against being killed at any moment.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.errors import CommandFailed, UcpError, UsageError
from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED, Tool
from k8s_ucp.tools.compiler import (
    Compiler,
    find_compiler,
    module_source,
    require_compiler,
)
from k8s_ucp.tools.progress import Phase, ToolProgress
from k8s_ucp.tools.recipe import MODULES, Recipe, needed_compiler, recipe_of
from k8s_ucp.tools.store import Entry, Store, remove
from k8s_ucp.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from k8s_ucp import process
    from k8s_ucp.tools.build import Builder

__all__ = ["EMBEDDED", "Installer", "Phase", "ToolProgress", "ToolState", "Toolbox"]

LOCK_DEADLINE = 5400.0
"""Seconds to wait for another process that installs the same tool: longer than a build may take."""

SIDE_BY_SIDE = 2
"""Builds at once. `go build` fills the cores except while it fetches modules and links."""

REPORT_PAUSE = 0.2
"""Seconds between two reports on one tool within a phase."""


@dataclass(frozen=True)
class ToolState:
    """One line of `ucp tools list`."""

    name: str
    version: str
    programs: tuple[str, ...]
    folder: Path | None
    """None: not installed."""
    damaged: tuple[str, ...] = ()
    """Programs that are not what was installed; looked at on request only."""


class Installer:
    """The tools of one cache folder, for one catalogue."""

    def __init__(
        self,
        cache: Path,
        report: Callable[[ToolProgress], None],
        *,
        catalogue: Mapping[str, Tool] = CATALOGUE,
        modules: Path = MODULES,
        keep_build: bool = False,
        lock_deadline: float = LOCK_DEADLINE,
        programs: process.Programs | None = None,
    ) -> None:
        """cache: absolute. report: called from several threads, one call at a time.

        programs: through it another thread ends an installation that is under way.
        keep_build: leave modules and object files (many GB) for the next build.
        """
        self._store = Store(cache)
        self._report = report
        self._report_lock = threading.Lock()
        self._catalogue = catalogue
        self._modules = modules
        self._keep_build = keep_build
        self._lock_deadline = lock_deadline
        self._programs = programs

    def install(self, names: Iterable[str] = EMBEDDED) -> Toolbox:
        """Install what is missing of the named tools; return all of them.

        Raises UcpError (no compiler, no network, no room, a broken build, ...). What was finished
        by then stays, and a later call goes on from there.
        """
        recipes = self._recipes(names)
        found = {recipe.tool.name: self._entry(recipe) for recipe in recipes}
        missing = [recipe for recipe in recipes if found[recipe.tool.name] is None]
        if missing:
            found.update(self._install(missing))
        elif self._store.has_leftovers(builds=not self._keep_build):
            self._tidy()
        return self._toolbox(found.values())

    def find(self, names: Iterable[str] = EMBEDDED) -> Toolbox:
        """The named tools as they are installed; builds nothing. Raises UcpError if one isn't."""
        found = {each.tool.name: self._entry(each) for each in self._recipes(names)}
        absent = [name for name, entry in found.items() if entry is None]
        if absent:
            raise UcpError(f"not installed: {', '.join(absent)}", next="ucp tools install")
        return self._toolbox(found.values())

    def check(self, names: Iterable[str] = EMBEDDED) -> None:
        """Raise UcpError where an install of the named tools would fail at once: see _builder."""
        missing = [each for each in self._recipes(names) if self._entry(each) is None]
        if missing:
            from k8s_ucp import process

            self._builder(missing, process.Programs())

    def missing(self, names: Iterable[str] = EMBEDDED) -> list[str]:
        """Which of the named tools an install would have to make."""
        return [each.tool.name for each in self._recipes(names) if self._entry(each) is None]

    def states(
        self, names: Iterable[str] | None = None, *, verify: bool = False
    ) -> list[ToolState]:
        """All tools, or the named ones. verify: compare each file with what was installed."""
        return [
            self._state(each, verify)
            for each in self._recipes(self._catalogue if names is None else names)
        ]

    def _state(self, recipe: Recipe, verify: bool) -> ToolState:
        entry = self._entry(recipe)
        return ToolState(
            name=recipe.tool.name,
            version=recipe.version,
            programs=tuple(recipe.tool.programs),
            folder=self._store.folder(entry.name) if entry else None,
            damaged=tuple(self._store.damaged(entry)) if entry and verify else (),
        )

    def _recipes(self, names: Iterable[str]) -> list[Recipe]:
        wanted = list(dict.fromkeys(names))
        unknown = [name for name in wanted if name not in self._catalogue]
        if unknown:
            raise UsageError(
                f"no such tool: {', '.join(unknown)}", next=f"one of: {', '.join(self._catalogue)}"
            )
        return [recipe_of(self._catalogue[name], self._modules) for name in wanted]

    def _compiler(self, recipe: Recipe) -> Compiler | None:
        folder = recipe.module_folder
        return find_compiler(needed_compiler(folder)) if folder else None

    def _entry(self, recipe: Recipe) -> Entry | None:
        compiler = self._compiler(recipe)
        entry = self._store.get(recipe.entry_name(compiler))
        if entry or compiler or not recipe.is_built:
            return entry
        return self._store.find(recipe.tool.name, recipe.digest)

    def _toolbox(self, entries: Iterable[Entry | None]) -> Toolbox:
        there = [entry for entry in entries if entry]
        return Toolbox(
            programs={
                program: self._store.program(entry.name, program)
                for entry in there
                for program in entry.sha256
            },
            modules={
                entry.tool: self._store.module(entry.name) for entry in there if entry.keeps_module
            },
        )

    def _tidy(self) -> None:
        """Remove what a killed installation left behind, many GB perhaps."""
        self._store.sweep(_end_orphans, _delete_later)
        if not self._keep_build:
            self._store.remove_build(_delete_later)

    def _install(self, missing: list[Recipe]) -> dict[str, Entry]:
        # Imported here: not needed, and slow, where everything is installed.
        from k8s_ucp import process

        running = self._programs or process.Programs()
        builder = self._builder(missing, running)
        self._store.sweep(_end_orphans, _delete_later)
        with self._store.using_build():
            entries = self._side_by_side(missing, builder, running)
        if builder and not self._keep_build:
            self._store.remove_build(_delete_later)
        return entries

    def _builder(self, missing: list[Recipe], running: process.Programs) -> Builder | None:
        """What builds the missing tools; None where none has to be built.

        Raises UcpError where the cache can't be written, or a compiler or room lacks.
        """
        from k8s_ucp.tools.build import Builder, require_room

        self._store.make()
        folders = [each.module_folder for each in missing if each.module_folder]
        if not folders:
            return None
        compiler = require_compiler(max(map(needed_compiler, folders)))
        if not self._store.build.exists():  # an interrupted build has taken its room already
            sizes = {each.tool.name: each.tool.megabytes for each in missing if each.is_built}
            require_room(self._store.cache, sizes)
        return Builder(compiler, module_source(compiler), self._store, running)

    def _side_by_side(
        self, missing: list[Recipe], builder: Builder | None, running: process.Programs
    ) -> dict[str, Entry]:
        """Install all; the first failure, or Ctrl-C, ends the others."""
        with ThreadPoolExecutor(SIDE_BY_SIDE, "install") as pool:
            jobs = {
                pool.submit(self._install_one, each, builder, running): each.tool.name
                for each in missing
            }
            try:
                done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
                # The first failure is the one to tell; the others then fail because of it.
                return {jobs[job]: job.result() for job in done}
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                running.end()
                raise

    def _install_one(
        self, recipe: Recipe, builder: Builder | None, running: process.Programs
    ) -> Entry:
        from k8s_ucp.tools import build
        from k8s_ucp.tools.build_failures import no_room

        compiler = builder.compiler if builder and recipe.is_built else None
        name = recipe.entry_name(compiler)
        since = time.monotonic()
        heard = self._teller(recipe, since)

        def waiting(pid: str) -> None:
            heard(Phase.WAITING, f"process {pid} installs it")
            if running.ended:
                raise UcpError(f"gave up waiting for process {pid} to install {recipe.tool.name}")

        with self._store.lock(name, self._lock_deadline, waiting):
            entry = self._store.get(name)
            if entry is None:
                partial = self._store.new_partial(name, _end_orphans)
                try:
                    if builder and recipe.is_built:
                        folder = builder.build(recipe, name, partial, heard)
                    else:
                        folder = partial
                        build.copy_wheel(recipe, folder)
                    entry = build.describe(recipe, name, compiler, since, folder)
                    self._store.publish(entry, folder)
                except OSError as error:
                    raise no_room(
                        f"can't write {recipe.tool.name} to {self._store.cache}: {error.strerror}"
                    ) from error
                finally:
                    remove(partial)
        heard(Phase.INSTALLED, "")
        return entry

    def _teller(self, recipe: Recipe, since: float) -> Callable[[Phase, str], None]:
        """A callback for one tool: every change of phase is told, details now and then."""
        last: list[tuple[Phase, float]] = []

        def heard(phase: Phase, detail: str) -> None:
            now = time.monotonic()
            if last and last[0][0] == phase and now - last[0][1] < REPORT_PAUSE:
                return
            last[:] = [(phase, now)]
            told = ToolProgress(recipe.tool.name, recipe.version, phase, now - since, detail)
            with self._report_lock:
                self._report(told)

        return heard


def _end_orphans(folder: Path) -> None:
    """End compilers that outlived a killed installer: only those that work in its folder."""
    from k8s_ucp import process

    for each in process.working_in(folder):
        if each.pid != os.getpid():
            process.terminate(each, grace=2)


def _delete_later(folder: Path) -> None:
    """Delete a folder of several hundred thousand files by a process of its own, in half a minute.

    Where that is killed, the next installation begins it again.
    """
    from k8s_ucp import process

    if not process.working_in(folder):
        with contextlib.suppress(CommandFailed):  # done before it could be looked at
            process.spawn(
                ["rm", "-rf", "--", str(folder)],
                env=os.environ,
                cwd=folder,
                log=Path(os.devnull),
            )
