"""Entries of the user's cache: complete or absent, one writer at a time, shared by all workspaces.

tools/<entry>/            bin/, module/, entry.json; appears by one rename, never changes
tools/<entry>.partial/    being built; without a holder of its lock it is a remnant and removed
tools/locks/<entry>.lock  flock of the builder, with its PID inside; never deleted
choices/<tool>            which of several installed entries to use; see Installer.choose
downloads/<entry>/        incomplete files of a release; a later installation resumes them
build/                    downloaded modules and object files; only needed while building
logs/<entry>.log          output of the last build
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp import locks, process
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.workspace import rename_synced
from k8s_ucp.workspace.records import parse_json, record_of

_PARTIAL = ".partial"
_ABOUT = "entry.json"


@dataclass(frozen=True)
class StoreEntry:
    """A finished entry, as in its entry.json."""

    name: str
    tool: str
    version: str
    digest: str
    """Of the recipe without the compiler."""
    compiler: str
    seconds: float
    """Duration of the build."""
    sha256: Mapping[str, str]
    """Program -> hash of its file."""
    keeps_module: bool
    source: str = ""
    """`release`; empty in entries that were built or copied."""


class ToolStore:
    """The folder of one user's installed tools."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.build = cache / "build"
        self._tools = cache / "tools"
        self._locks = cache / "tools" / "locks"
        self._logs = cache / "logs"

    def make(self) -> None:
        """Create the folders. Raises UcpError if they are not writable."""
        try:
            for folder in (self.cache, self._tools, self._locks, self._logs):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self._locks / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UcpError(
                f"failed to write to the cache folder {self.cache}: {error.strerror}",
                next="set UCP_CACHE_DIR to a writable folder",
            ) from error

    def folder(self, name: str) -> Path:
        return self._tools / name

    def program(self, name: str, program: str) -> Path:
        return self._tools / name / "bin" / program

    def module(self, name: str) -> Path:
        return self._tools / name / "module"

    def downloads(self, name: str) -> Path:
        return self.cache / "downloads" / name

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def choice(self, tool: str) -> str:
        """The source stored by `choose`; empty if there is none."""
        try:
            return (self.cache / "choices" / tool).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return ""

    def choose(self, tool: str, source: str) -> None:
        """Store the source from which a tool is to be used. Raises OSError."""
        path = self.cache / "choices" / tool
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(source, "ascii")

    def get(self, name: str) -> StoreEntry | None:
        """The entry, if it exists with all its programs."""
        try:
            about = (self._tools / name / _ABOUT).read_text(encoding="utf-8")
            entry = record_of(StoreEntry, parse_json(about))
        except (OSError, ValueError):
            return None
        complete = all(os.access(self.program(name, each), os.X_OK) for each in entry.sha256)
        return entry if complete else None

    def find(self, tool: str, digest: str) -> StoreEntry | None:
        """An entry of the same recipe built with another compiler; used if there is no compiler."""
        for about in sorted(self._tools.glob(f"{tool}-*/{_ABOUT}")):
            entry = self.get(about.parent.name)
            if entry and entry.tool == tool and entry.digest == digest:
                return entry
        return None

    def damaged(self, entry: StoreEntry) -> list[str]:
        """Programs whose file differs from what was installed."""
        return [
            program
            for program, wanted in entry.sha256.items()
            if file_hash(self.program(entry.name, program)) != wanted
        ]

    @contextlib.contextmanager
    def lock(self, name: str, deadline: float, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold an entry's lock. deadline: seconds to wait for another holder.

        waiting: called repeatedly with the holder's PID while there is one; may raise to give up.
        Raises DeadlineExceeded.
        """
        path = self._locks / f"{name}.lock"
        with path.open("a+", encoding="ascii") as file:
            until = time.monotonic() + deadline
            while not locks.take(file.fileno()):
                file.seek(0)
                holder = file.read().strip() or "unknown"
                waiting(holder)
                if time.monotonic() > until:
                    raise DeadlineExceeded(
                        f"lock to install {name}",
                        deadline,
                        f"process {holder} is installing it",
                        next=f"wait for process {holder} or stop it, then run the command again",
                    )
                time.sleep(0.1)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def new_partial(self, name: str, end_orphans: Callable[[Path], None]) -> Path:
        """An empty folder to build in. The caller holds the lock, so an old one is abandoned."""
        folder = self._tools / f"{name}{_PARTIAL}"
        if folder.exists():
            end_orphans(folder)
            remove(folder)
        broken = self._tools / name
        if broken.exists():  # incomplete, or it would not be built
            broken.rename(folder)
            remove(folder)
        folder.mkdir(mode=0o700)
        return folder

    def publish(self, entry: StoreEntry, folder: Path) -> None:
        """Make a finished folder the entry: synced to disk first, then visible by one rename."""
        (folder / _ABOUT).write_text(json.dumps(asdict(entry), indent=1), encoding="utf-8")
        rename_synced(folder, self._tools / entry.name)

    def has_leftovers(self, *, builds: bool) -> bool:
        """Whether a sweep may find something. builds: include modules and object files."""
        left = any(self._tools.glob(f"*{_PARTIAL}")) or any(self.cache.glob("build.old-*"))
        return left or (builds and self.build.exists())

    def sweep(self, end_orphans: Callable[[Path], None], delete: Callable[[Path], None]) -> None:
        """Remove partial folders whose builder is gone, that is, whose lock is free.

        delete: removes a large folder that is no longer used.
        """
        for folder in self._tools.glob(f"*{_PARTIAL}"):
            path = self._locks / f"{folder.name.removesuffix(_PARTIAL)}.lock"
            with path.open("a+") as file:
                if locks.take(file.fileno()):
                    end_orphans(folder)
                    remove(folder)
        for folder in self.cache.glob("build.old-*"):
            delete(folder)

    def prune(
        self, needed: Callable[[StoreEntry], bool], in_use: Callable[[Path], bool]
    ) -> tuple[list[str], list[str]]:
        """Remove entries that are neither needed nor in use: (names removed, names in use)."""
        removed, used = [], []
        for about in sorted(self._tools.glob(f"*/{_ABOUT}")):
            name = about.parent.name
            entry = self.get(name)
            if entry is None or entry.name != name or needed(entry):
                continue
            with (self._locks / f"{name}.lock").open("a+") as file:
                if not locks.take(file.fileno()) or in_use(about.parent):
                    used.append(name)
                    continue
                # Renamed to a partial folder, so that the next sweep removes it if this is killed.
                partial = self._tools / f"{name}{_PARTIAL}"
                remove(partial)
                about.parent.rename(partial)
                remove(partial)
                removed.append(name)
        return removed, used

    @contextlib.contextmanager
    def using_build(self) -> Iterator[None]:
        """Protects the folder of modules and object files from removal within the block."""
        with (self._locks / "build.lock").open("a+") as file:
            # Blocks only while another process renames the folder.
            locks.share(file.fileno())
            yield

    def remove_build(self, delete: Callable[[Path], None]) -> None:
        """Remove modules and object files, unless a build is in progress."""
        old = self.cache / f"build.old-{os.getpid()}"
        with (self._locks / "build.lock").open("a+") as file:
            if not locks.take(file.fileno()):
                return
            with contextlib.suppress(FileNotFoundError):
                self.build.rename(old)
                delete(old)


def file_hash(path: Path) -> str:
    """sha256 of a file; empty if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def remove(folder: Path) -> None:
    """Remove a folder of ours, unless another process does."""
    shutil.rmtree(folder, ignore_errors=True)


def end_orphans(folder: Path) -> None:
    """End compilers that outlived a killed installer: only those working in its folder."""
    for each in process.working_in(folder):
        if each.pid != os.getpid():
            process.terminate(each, grace=2)


def delete_later(folder: Path) -> None:
    """Delete a folder of several hundred thousand files in a separate process, in half a minute.

    If that is killed, the next installation starts it again.
    """
    if not process.working_in(folder):
        with contextlib.suppress(CommandFailed):  # finished before it could be identified
            process.spawn(
                ["rm", "-rf", "--", str(folder)],
                env=os.environ,
                cwd=folder,
                log=Path(os.devnull),
            )
