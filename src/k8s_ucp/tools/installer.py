"""Installs the pinned programs into the user's cache, and finds them there.

One call does everything: `Installer(cache, report).install(EMBEDDED)` returns a Toolbox at once if
all is installed. Otherwise it builds or downloads what is missing, in parallel; it is safe against
concurrent installations and against being killed at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError, unknown_name
from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED, Tool
from k8s_ucp.tools.go.compiler import Compiler, find_compiler
from k8s_ucp.tools.recipe import (
    MODULES,
    ProgramSource,
    Recipe,
    ToolProgress,
    needed_compiler,
    ways,
)
from k8s_ucp.tools.store import StoreEntry, ToolStore
from k8s_ucp.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from k8s_ucp import process
    from k8s_ucp.tools.parallel_installer import ParallelInstaller

LOCK_DEADLINE = 5400.0
"""Seconds to wait for another process that installs the same tool; longer than a build takes."""


@dataclass(frozen=True)
class ToolState:
    """One line of `ucp tools list`."""

    name: str
    version: str
    programs: tuple[str, ...]
    folder: Path | None
    """None if it is not installed."""
    damaged: tuple[str, ...] = ()
    """Programs that differ from what was installed; only checked on request."""
    origin: str = ""
    """sources, release or wheel; empty if it isn't installed."""


@dataclass(frozen=True)
class _Tool:
    """A requested tool."""

    name: str
    ways: tuple[Recipe, ...]
    """Ways to get it, best first."""


class Installer:
    """The tools of one cache folder, for one catalogue."""

    def __init__(
        self,
        cache: Path,
        report: Callable[[ToolProgress], None],
        *,
        source: ProgramSource = ProgramSource.SOURCES,
        catalogue: Mapping[str, Tool] = CATALOGUE,
        modules: Path = MODULES,
        keep_build: bool = False,
        lock_deadline: float = LOCK_DEADLINE,
        programs: process.RunningPrograms | None = None,
        locks: Path | None = None,
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """cache: absolute. report: called from several threads, one call at a time.

        kept: tool -> entry of another version, which is used instead while it exists. locks: a file
        with the hashes of releases instead of the shipped one. programs: lets another thread cancel
        an installation. keep_build: keep modules and object files (many GB) for the next build.
        """
        self._store = ToolStore(cache)
        self._report = report
        self._catalogue = catalogue
        self._modules = modules
        self._keep_build = keep_build
        self._lock_deadline = lock_deadline
        self._programs = programs
        self._source = source
        self._locks = locks
        self._kept = kept

    def install(self, names: Iterable[str] = EMBEDDED) -> Toolbox:
        """Install those of the named tools that are missing; returns all of them.

        Raises UcpError (no compiler, no network, no space, a failed build, ...). What was finished
        by then is kept, and a later call continues.
        """
        tools = self._tools(names)
        found = {each.name: self._entry(each) for each in tools}
        missing = [each for each in tools if found[each.name] is None]
        if missing:
            found.update(self._install(missing))
        elif self._store.has_leftovers(builds=not self._keep_build):
            self._tidy()
        return self._toolbox(found.values())

    def choose(self, names: Iterable[str]) -> None:
        """Make `auto` use the tools of this source, even if another one is installed too."""
        for each in self._tools(names):
            self._store.choose(each.name, self._source)

    def find(self, names: Iterable[str] = EMBEDDED) -> Toolbox:
        """The named tools if installed; installs nothing. Raises UcpError if one is missing."""
        found = {each.name: self._entry(each) for each in self._tools(names)}
        absent = [name for name, entry in found.items() if entry is None]
        if absent:
            raise UcpError(
                f"not installed: {', '.join(absent)}", next=f"ucp tools install {' '.join(absent)}"
            )
        return self._toolbox(found.values())

    def check(self, names: Iterable[str] = EMBEDDED) -> list[str]:
        """Raise UcpError if an installation of the named tools would fail at once.

        That is: the cache is not writable, a compiler or space is missing, or publishers are
        unreachable. Returns descriptions of listeners that can't be bound to loopback after the
        installation.
        """
        tools = self._tools(names)
        tools = [each for each in tools if self._kept_entry(each.name) is None]
        found = {each.name: self._way(each) for each in tools}
        missing = [each for each in tools if found[each.name] is None]
        if missing:
            from k8s_ucp import process

            self._store.make()
            order = self._parallel_installer(process.RunningPrograms()).order(
                {each.name: each.ways for each in missing}
            )
            found.update({name: ways[0] for name, ways in order.items()})
        return [words for way in found.values() if way for words in way.exposed]

    def missing(self, names: Iterable[str]) -> list[str]:
        """The named tools that are not installed."""
        return [each.name for each in self._tools(names) if self._entry(each) is None]

    def prune(self, kept: Collection[str] = ()) -> tuple[list[str], list[str]]:
        """Remove entries of other versions of the catalogue, unless a process uses them.

        kept: entries to keep in addition. Returns (removed entries, entries in use).
        """
        from k8s_ucp import process

        recipes = [
            each
            for tool in self._catalogue.values()
            for source in ProgramSource
            for each in ways(tool, source, self._modules)
        ]
        known = {(each.tool.name, each.digest) for each in recipes}
        self._store.make()
        return self._store.prune(
            lambda entry: (entry.tool, entry.digest) in known,
            lambda folder: folder.name in kept or process.is_mentioned(folder),
        )

    def states(
        self, names: Iterable[str] | None = None, *, verify: bool = False
    ) -> list[ToolState]:
        """All tools, or the named ones. verify: compare each file with its recorded hash."""
        return [
            self._state(each, verify)
            for each in self._tools(self._catalogue if names is None else names)
        ]

    def _state(self, tool: _Tool, verify: bool) -> ToolState:
        entry = self._entry(tool)
        recipe = self._way(tool) or tool.ways[0]
        version = entry.version if entry else recipe.version
        built = "sources" if recipe.is_built else "wheel"
        return ToolState(
            name=tool.name,
            version=version,
            programs=recipe.programs,
            folder=self._store.folder(entry.name) if entry else None,
            damaged=tuple(self._store.damaged(entry)) if entry and verify else (),
            origin=(entry.source or built) if entry else "",
        )

    def _tools(self, names: Iterable[str]) -> list[_Tool]:
        wanted = list(dict.fromkeys(names))
        unknown = [name for name in wanted if name not in self._catalogue]
        if unknown:
            raise unknown_name("program", unknown[0], [*self._catalogue], next="ucp tools list")
        return [_Tool(name, self._ways(name)) for name in wanted]

    def _ways(self, name: str) -> tuple[Recipe, ...]:
        found = ways(self._catalogue[name], self._source, self._modules)
        chosen = self._source is ProgramSource.AUTO and self._store.choice(name)
        return found[::-1] if chosen == ProgramSource.RELEASES else found

    def _compiler(self, recipe: Recipe) -> Compiler | None:
        folder = recipe.module_folder
        return find_compiler(needed_compiler(folder)) if folder and recipe.is_built else None

    def _way(self, tool: _Tool) -> Recipe | None:
        """The way in which it was installed."""
        return next((each for each in tool.ways if self._entry_of(each)), None)

    def _kept_entry(self, tool: str) -> StoreEntry | None:
        """The kept entry, if of another version; builds of the same version are equivalent."""
        entry = self._store.get(self._kept[tool]) if tool in self._kept else None
        return entry if entry and entry.version != self._catalogue[tool].version else None

    def _entry(self, tool: _Tool) -> StoreEntry | None:
        if kept := self._kept_entry(tool.name):
            return kept
        way = self._way(tool)
        return self._entry_of(way) if way else None

    def _entry_of(self, recipe: Recipe) -> StoreEntry | None:
        compiler = self._compiler(recipe)
        entry = self._store.get(recipe.entry_name(compiler))
        if entry or compiler or not recipe.is_built:
            return entry
        return self._store.find(recipe.tool.name, recipe.digest)

    def _toolbox(self, entries: Iterable[StoreEntry | None]) -> Toolbox:
        found = [entry for entry in entries if entry]
        return Toolbox(
            programs={
                program: self._store.program(entry.name, program)
                for entry in found
                for program in entry.sha256
            },
            modules={
                entry.tool: self._store.module(entry.name) for entry in found if entry.keeps_module
            },
            entries={entry.tool: entry.name for entry in found},
        )

    def _tidy(self) -> None:
        """Remove remains of a killed installation, which can be many GB."""
        from k8s_ucp.tools.store import delete_later, end_orphans

        self._store.sweep(end_orphans, delete_later)
        if not self._keep_build:
            self._store.remove_build(delete_later)

    def _install(self, missing: list[_Tool]) -> dict[str, StoreEntry]:
        # Imported here, because it is slow and not needed if everything is installed.
        from k8s_ucp import process
        from k8s_ucp.tools.store import delete_later, end_orphans

        self._store.make()
        installer = self._parallel_installer(self._programs or process.RunningPrograms())
        order = installer.order({each.name: each.ways for each in missing})
        self._store.sweep(end_orphans, delete_later)
        with self._store.using_build():
            entries = installer.install_all(order)
        if not self._keep_build:
            self._store.remove_build(delete_later)
        return entries

    def _parallel_installer(self, running: process.RunningPrograms) -> ParallelInstaller:
        from k8s_ucp.tools.parallel_installer import ParallelInstaller

        return ParallelInstaller(
            self._store,
            self._report,
            running,
            lock_deadline=self._lock_deadline,
            locks=self._locks,
        )
