"""The inputs of a cache entry, and the entry's name, which depends on them.

An entry is called `<tool>-<version>-<hash>`; the hash covers everything that can change the result:
dependencies and their checksums, our edits, linker variables, flags, compiler, system, machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.go.compiler import Compiler, Version, parse_version
from k8s_ucp.tools.releases.publishers import Asset

MODULES = Path(__file__).parent / "modules"

FORMAT = 1
"""Incremented if the installer changes the layout of entries."""

BUILD_FLAGS = (
    "-mod=readonly",
    "-modcacherw",
    "-buildvcs=false",
    "-trimpath",
    # The linker drops debug information anyway; not generating it saves a tenth of the time.
    "-gcflags=all=-dwarf=false",
)

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class Phase(StrEnum):
    """Phases of an installation, in order: a release is downloaded, sources are compiled."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    MODULES = "fetching modules"
    COMPILING = "compiling"
    INSTALLED = "installed"


@dataclass(frozen=True)
class TimeLeft:
    """Seconds until all tools are built, at the overall pace and at the recent pace."""

    overall: float
    lately: float


@dataclass(frozen=True)
class ToolProgress:
    """One tool's state; elapsed: seconds since its installation began."""

    tool: str
    version: str
    phase: Phase
    elapsed: float
    detail: str = ""
    kilobytes: int = 0
    """Source that was compiled or begun, as counted in `Tool.kilobytes`."""
    left: TimeLeft | None = None
    """Until all tools are built; None if unknown."""


@dataclass(frozen=True)
class Recipe:
    """One way to get a tool on this machine: an installed wheel, sources, or a release."""

    tool: Tool
    version: str
    digest: str
    """Of everything but the compiler."""
    wheel_file: Path | None = None
    """The program to copy."""
    module_folder: Path | None = None
    assets: tuple[Asset, ...] = ()
    """The files of a release to download."""

    @property
    def is_built(self) -> bool:
        return self.wheel_file is None and not self.assets

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs of this recipe: a release may lack some on some platforms."""
        if self.assets:
            return tuple(name for each in self.assets for name in each.programs)
        return tuple(self.tool.programs)

    @property
    def exposed(self) -> tuple[str, ...]:
        """Listeners of its programs that can't be bound to loopback."""
        release = self.tool.release
        return release.exposed if release and self.assets else ()

    def entry_name(self, compiler: Compiler | None) -> str:
        """Name of its folder in the cache; for builds it depends on the compiler."""
        seed = f"{self.digest} {compiler.version if compiler and self.is_built else ''}"
        short = hashlib.sha256(seed.encode()).hexdigest()[:12]
        return f"{self.tool.name}-{self.version}-{short}"


class ProgramSource(StrEnum):
    """Source of the programs: `tools.source` in the topology."""

    AUTO = "auto"
    """Releases if they are reachable, else sources; accepts whatever is installed."""
    SOURCES = "sources"
    RELEASES = "releases"
    """Sources if there is no release."""


def ways(tool: Tool, source: ProgramSource, modules: Path = MODULES) -> tuple[Recipe, ...]:
    """Ways to get a tool, best first. Builds are preferred: they listen on loopback only."""
    own = recipe_of(tool, modules)
    release = release_of(tool, modules)
    if source is ProgramSource.SOURCES or release is None or not own.is_built:
        return (own,)
    return (release,) if source is ProgramSource.RELEASES else (own, release)


def release_of(tool: Tool, modules: Path = MODULES) -> Recipe | None:
    """The recipe for its release on this machine; None if there is none."""
    assets = tool.release.on(tool.version, platform()) if tool.release else ()
    if not assets:
        return None
    folder = modules / tool.name
    parts = {
        "assets": [asdict(each) for each in assets],
        "keep": tool.keep,
        "source": _file_hash(folder / "go.sum") if tool.keep else "",
    }
    return Recipe(tool, tool.version, _digest(parts), module_folder=folder, assets=assets)


def recipe_of(tool: Tool, modules: Path = MODULES) -> Recipe:
    """The recipe for this machine: the wheel if it is installed, or else the sources."""
    if tool.wheel:
        for folder in map(Path, filter(None, sys.path)):
            for about in folder.glob(f"{tool.wheel.distribution}-*.dist-info"):
                version = about.name.removesuffix(".dist-info").rpartition("-")[2]
                program = folder / tool.wheel.file
                if os.access(program, os.X_OK):
                    digest = _digest({"wheel": tool.wheel.distribution, "version": version})
                    return Recipe(tool, version, digest, wheel_file=program)
    folder = modules / tool.name
    sources = {path.name: _file_hash(path) for path in module_files(folder)}
    parts = {
        "sources": sources,
        "programs": dict(tool.programs),
        "variables": dict(tool.variables),
        "edits": [asdict(edit) for edit in tool.edits],
        "keep": tool.keep,
        "flags": BUILD_FLAGS,
    }
    return Recipe(tool, tool.version, _digest(parts), module_folder=folder)


def module_files(folder: Path) -> list[Path]:
    """Sorted files of a tool's module folder that a build needs."""
    names = sorted(path.name for path in folder.iterdir())
    return [folder / name for name in names if name in ("go.mod", "go.sum") or name[-3:] == ".go"]


def needed_compiler(folder: Path) -> Version:
    """The oldest Go version that go.mod allows."""
    found = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    return parse_version(found[1]) if found else ()


def linker_flags(tool: Tool) -> str:
    """Strip debug information, and set the program's version variables."""
    variables = (f"-X '{name}={value}'" for name, value in sorted(tool.variables.items()))
    return " ".join(["-s", "-w", *variables])


def platform() -> str:
    """This machine's platform as in releases, such as linux/amd64."""
    machine = os.uname().machine
    return f"{sys.platform}/{_MACHINES.get(machine, machine)}"


def _digest(parts: Mapping[str, object]) -> str:
    text = json.dumps([FORMAT, platform(), parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
