"""What a cache entry is made from, and the name that follows from it.

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
"""Raised when the installer lays entries out differently."""

BUILD_FLAGS = (
    "-mod=readonly",
    "-modcacherw",
    "-buildvcs=false",
    "-trimpath",
    # The linker drops debug information anyway; not making it saves a tenth of the time.
    "-gcflags=all=-dwarf=false",
)

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class Phase(StrEnum):
    """What happens to a tool, in this order: a release is downloaded, sources are compiled."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    MODULES = "fetching modules"
    COMPILING = "compiling"
    INSTALLED = "installed"


@dataclass(frozen=True)
class TimeLeft:
    """Seconds until all tools are built, at the pace since the beginning and at that of lately."""

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
    """Of source that were compiled or begun, as `Tool.kilobytes` counts."""
    left: TimeLeft | None = None
    """Until all tools are built; None as long as nobody knows."""


@dataclass(frozen=True)
class Recipe:
    """One way to get a tool here: from a wheel that is installed, from sources, or a release."""

    tool: Tool
    version: str
    digest: str
    """Of everything but the compiler."""
    wheel_file: Path | None = None
    """The program to copy."""
    module_folder: Path | None = None
    assets: tuple[Asset, ...] = ()
    """The files of a release to fetch."""

    @property
    def is_built(self) -> bool:
        return self.wheel_file is None and not self.assets

    @property
    def programs(self) -> tuple[str, ...]:
        """What it gives: a release may lack programs on some platforms."""
        if self.assets:
            return tuple(name for each in self.assets for name in each.programs)
        return tuple(self.tool.programs)

    @property
    def exposed(self) -> tuple[str, ...]:
        """Listeners of its programs that can't be bound to loopback."""
        release = self.tool.release
        return release.exposed if release and self.assets else ()

    def entry_name(self, compiler: Compiler | None) -> str:
        """Name of its folder in the cache. A build's name depends on the compiler."""
        seed = f"{self.digest} {compiler.version if compiler and self.is_built else ''}"
        short = hashlib.sha256(seed.encode()).hexdigest()[:12]
        return f"{self.tool.name}-{self.version}-{short}"


class ProgramSource(StrEnum):
    """Where programs come from: `tools.source` in the topology."""

    AUTO = "auto"
    """Releases where they can be reached, else sources; what is installed already will do."""
    SOURCES = "sources"
    RELEASES = "releases"
    """Sources where there is no release."""


def ways(tool: Tool, source: ProgramSource, modules: Path = MODULES) -> tuple[Recipe, ...]:
    """How to get a tool, best first. A build comes before a release: its listeners are ours."""
    own = recipe_of(tool, modules)
    release = release_of(tool, modules)
    if source is ProgramSource.SOURCES or release is None or not own.is_built:
        return (own,)
    return (release,) if source is ProgramSource.RELEASES else (own, release)


def release_of(tool: Tool, modules: Path = MODULES) -> Recipe | None:
    """The recipe for its release on this machine; None where there is none."""
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
    """The recipe for this machine: the wheel where it is installed, else the sources."""
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
    """The files of a tool's module folder that a build needs, sorted."""
    names = sorted(path.name for path in folder.iterdir())
    return [folder / name for name in names if name in ("go.mod", "go.sum") or name[-3:] == ".go"]


def needed_compiler(folder: Path) -> Version:
    """The oldest Go that go.mod allows."""
    found = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    return parse_version(found[1]) if found else ()


def linker_flags(tool: Tool) -> str:
    """Strip debug information; set the program's own version variables."""
    variables = (f"-X '{name}={value}'" for name, value in sorted(tool.variables.items()))
    return " ".join(["-s", "-w", *variables])


def platform() -> str:
    """This machine as publishers write it: linux/amd64."""
    machine = os.uname().machine
    return f"{sys.platform}/{_MACHINES.get(machine, machine)}"


def _digest(parts: Mapping[str, object]) -> str:
    text = json.dumps([FORMAT, platform(), parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
