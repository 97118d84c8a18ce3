"""Install the pinned programs into the user's cache, and find them there.

One call does everything: `Installer(cache, report).install(EMBEDDED)` returns a Toolbox at once
where all is installed, and else builds or downloads what is missing, side by side, safe against
other installs at the same time and against being killed at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError, UsageError
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
    from k8s_ucp.tools.maker import Maker

LOCK_DEADLINE = 5400.0
"""Seconds to wait for another process that installs the same tool: longer than a build may take."""


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
    origin: str = ""
    """sources, release or wheel; empty where it isn't installed."""


@dataclass(frozen=True)
class _Tool:
    """A tool that is asked for."""

    name: str
    ways: tuple[Recipe, ...]
    """How to get it, best first."""


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

        kept: entries of other versions that count as the tools of these names while they are there.

        locks: the file with the hashes of releases, where not the shipped one.
        programs: through it another thread ends an installation that is under way.
        keep_build: leave modules and object files (many GB) for the next build.
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
        """Install what is missing of the named tools; return all of them.

        Raises UcpError (no compiler, no network, no room, a broken build, ...). What was finished
        by then stays, and a later call goes on from there.
        """
        tools = self._tools(names)
        found = {each.name: self._entry(each) for each in tools}
        missing = [each for each in tools if found[each.name] is None]
        if missing:
            found.update(self._install(missing))
        elif self._store.has_leftovers(builds=not self._keep_build):
            self._tidy()
        return self._toolbox(found.values())

    def choose(self, names: Iterable[str] = EMBEDDED) -> None:
        """Have `auto` use what this source gave, also where another one is installed too."""
        for each in self._tools(names):
            self._store.choose(each.name, self._source)

    def find(self, names: Iterable[str] = EMBEDDED) -> Toolbox:
        """The named tools as they are installed; gets nothing. Raises UcpError if one isn't."""
        found = {each.name: self._entry(each) for each in self._tools(names)}
        absent = [name for name, entry in found.items() if entry is None]
        if absent:
            raise UcpError(
                f"not installed: {', '.join(absent)}", next=f"ucp tools install {' '.join(absent)}"
            )
        return self._toolbox(found.values())

    def check(self, names: Iterable[str] = EMBEDDED) -> list[str]:
        """Raise UcpError where an install of the named tools would fail at once.

        That is: the cache can't be written, a compiler or room lacks, publishers can't be reached.
        Returns the listeners, in words, that can't be bound to loopback once they are installed.
        """
        tools = self._tools(names)
        tools = [each for each in tools if self._kept_entry(each.name) is None]
        found = {each.name: self._way(each) for each in tools}
        missing = [each for each in tools if found[each.name] is None]
        if missing:
            from k8s_ucp import process

            self._store.make()
            order = self._maker(process.RunningPrograms()).order(
                {each.name: each.ways for each in missing}
            )
            found.update({name: ways[0] for name, ways in order.items()})
        return [words for way in found.values() if way for words in way.exposed]

    def missing(self, names: Iterable[str] = EMBEDDED) -> list[str]:
        """Which of the named tools an install would have to make."""
        return [each.name for each in self._tools(names) if self._entry(each) is None]

    def prune(self, kept: Collection[str] = ()) -> tuple[list[str], list[str]]:
        """Remove what other versions of the catalogue installed, unless a process uses it.

        kept: entries that stay as well. Names of the entries that were removed, and of those that
        are used.
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
        """All tools, or the named ones. verify: compare each file with what was installed."""
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
            raise UsageError(
                f"unknown program: {', '.join(unknown)}",
                next=f"one of: {', '.join(self._catalogue)}",
            )
        return [_Tool(name, self._ways(name)) for name in wanted]

    def _ways(self, name: str) -> tuple[Recipe, ...]:
        found = ways(self._catalogue[name], self._source, self._modules)
        chosen = self._source is ProgramSource.AUTO and self._store.choice(name)
        return found[::-1] if chosen == ProgramSource.RELEASES else found

    def _compiler(self, recipe: Recipe) -> Compiler | None:
        folder = recipe.module_folder
        return find_compiler(needed_compiler(folder)) if folder and recipe.is_built else None

    def _way(self, tool: _Tool) -> Recipe | None:
        """The way by which it was installed."""
        return next((each for each in tool.ways if self._entry_of(each)), None)

    def _kept_entry(self, tool: str) -> StoreEntry | None:
        """Of another version: another build of the same one is as good as a newer one."""
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
            entries={entry.tool: entry.name for entry in there},
        )

    def _tidy(self) -> None:
        """Remove what a killed installation left behind, many GB perhaps."""
        from k8s_ucp.tools.store import delete_later, end_orphans

        self._store.sweep(end_orphans, delete_later)
        if not self._keep_build:
            self._store.remove_build(delete_later)

    def _install(self, missing: list[_Tool]) -> dict[str, StoreEntry]:
        # Imported here: not needed, and slow, where everything is installed.
        from k8s_ucp import process
        from k8s_ucp.tools.store import delete_later, end_orphans

        self._store.make()
        maker = self._maker(self._programs or process.RunningPrograms())
        order = maker.order({each.name: each.ways for each in missing})
        self._store.sweep(end_orphans, delete_later)
        with self._store.using_build():
            entries = maker.make_all(order)
        if not self._keep_build:
            self._store.remove_build(delete_later)
        return entries

    def _maker(self, running: process.RunningPrograms) -> Maker:
        from k8s_ucp.tools.maker import Maker

        return Maker(
            self._store,
            self._report,
            running,
            lock_deadline=self._lock_deadline,
            locks=self._locks,
        )
