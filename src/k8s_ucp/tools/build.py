"""Creates a cache entry in a folder by compiling pinned sources or copying a program of a wheel."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from k8s_ucp import process
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.tools.catalogue import Edit, Tool
from k8s_ucp.tools.go.build_failures import explain, no_room
from k8s_ucp.tools.go.compiler import Compiler, ModuleSource
from k8s_ucp.tools.recipe import BUILD_FLAGS, Phase, Recipe, linker_flags, module_files
from k8s_ucp.tools.store import StoreEntry, ToolStore, file_hash

MODULES_DEADLINE = 1800.0
"""Seconds to download the modules of one tool."""

EACH_PACKAGE = 10_000
"""The fixed cost of a package (imports, an export file), as an equivalent number of source
bytes."""

BUILD_DEADLINE = 3600.0
"""Seconds to compile one tool; the slowest takes three minutes on two idle cores."""


class OnProgress(Protocol):
    """Called with a phase, a detail, and the kilobytes that were compiled or begun."""

    def __call__(self, phase: Phase, detail: str, kilobytes: int = 0) -> None: ...


def copy_wheel(recipe: Recipe, folder: Path) -> None:
    """Copy the program of an installed wheel to `folder`/bin."""
    assert recipe.wheel_file
    (name,) = recipe.tool.programs
    (folder / "bin").mkdir()
    program = folder / "bin" / name
    shutil.copyfile(recipe.wheel_file, program)
    program.chmod(0o755)


@dataclass(frozen=True)
class Builder:
    """Compiles tools with one compiler; all tools share modules and object files."""

    compiler: Compiler
    source: ModuleSource
    store: ToolStore
    running: process.RunningPrograms

    def build(self, recipe: Recipe, name: str, partial: Path, on_progress: OnProgress) -> Path:
        """Compile in `partial`; returns the folder in it that is to become the entry.

        Raises UcpError with the last lines of the output; the entry's log has all of it.
        """
        tool = recipe.tool
        work, entry = partial / "work", partial / "entry"
        for folder in (work, entry, entry / "bin", partial / "tmp"):
            folder.mkdir(mode=0o755)
        assert recipe.module_folder
        for path in module_files(recipe.module_folder):
            shutil.copyfile(path, work / path.name)
        with self.store.log(name).open("w", encoding="utf-8") as log:

            def write(line: str) -> None:
                with contextlib.suppress(OSError):  # the compiler reports a full disk too
                    print(line, file=log, flush=True)

            run = _Run(self, tool, partial, write)
            on_progress(Phase.MODULES, "")
            if tool.edits or tool.keep:
                module = run.download()
                keep(tool, module, entry / "module")
                if tool.edits:
                    replace_by_edited_copy(tool, module, work)
            packages = run.packages(on_progress)
            on_progress(Phase.COMPILING, "")
            run.compile(entry / "bin", packages, on_progress)
        return entry


@dataclass(frozen=True)
class _Run:
    """The `go` commands for one tool."""

    builder: Builder
    tool: Tool
    partial: Path
    log: Callable[[str], None]

    def download(self) -> Path:
        """The folder of the tool's module, verified against go.sum."""
        self._go(["mod", "download", self.tool.module], MODULES_DEADLINE)
        folder = self._go(["list", "-m", "-f", "{{.Dir}}", self.tool.module], MODULES_DEADLINE)
        return Path(folder.strip())

    def packages(self, on_progress: OnProgress) -> Mapping[str, int]:
        """The weight of each package to compile. Listing them downloads their modules."""

        def line(text: str) -> None:
            if text.startswith("go: downloading "):
                on_progress(Phase.MODULES, text.removeprefix("go: downloading "))

        fields = r'{{.ImportPath}}{{"\t"}}{{.Dir}}{{range .GoFiles}}{{"\t"}}{{.}}{{end}}'
        listed = ["list", "-deps", "-f", fields, *self.tool.programs.values()]
        lines = self._go(listed, MODULES_DEADLINE, line).splitlines()
        return {
            package: weight([Path(folder, name) for name in names])
            for package, folder, *names in (each.split("\t") for each in lines if "\t" in each)
        }

    def compile(self, folder: Path, packages: Mapping[str, int], on_progress: OnProgress) -> None:
        """Compile all programs of the tool into `folder`, under their own names."""
        begun: set[str] = set()

        def line(text: str) -> None:
            if text in packages:
                begun.add(text)
                progress = f"{len(begun)} of {len(packages)} packages"
                on_progress(
                    Phase.COMPILING, progress, sum(packages[each] for each in begun) // 1000
                )

        self._go(
            [
                "build",
                "-v",
                f"-ldflags={linker_flags(self.tool)}",
                "-o",
                f"{folder}/",
                *self.tool.programs.values(),
            ],
            BUILD_DEADLINE,
            line,
        )
        for name, package in self.tool.programs.items():
            (folder / _go_name(package)).rename(folder / name)

    def _go(
        self, arguments: list[str], deadline: float, on_line: Callable[[str], None] | None = None
    ) -> str:
        hide = self.builder.source.hide

        def line(text: str) -> None:
            if arguments[0] != "list" or text.startswith("go: "):
                self.log(hide(text))
            if on_line:
                on_line(text)

        self.log(f"$ go {' '.join(arguments)}")
        try:
            return process.run(
                [self.builder.compiler.program, *arguments],
                timeout=deadline,
                env=go_environment(self.builder.store.build, self.partial / "tmp"),
                cwd=self.partial / "work",
                on_line=line,
                programs=self.builder.running,
            )
        except DeadlineExceeded as error:
            raise DeadlineExceeded(
                f"{self.tool.name} {self.tool.version}: `go {arguments[0]}`",
                error.seconds,
                hide(error.last_state),
                next="run the command again: it continues where it stopped",
            ) from error
        except CommandFailed as error:
            log = self.builder.store.log(self.partial.name.removesuffix(".partial"))
            raise explain(error, self.tool, self.builder.source, log) from error


def weight(sources: Iterable[Path]) -> int:
    """Relative compile time of a package, in bytes of source."""
    return EACH_PACKAGE + sum(each.stat().st_size for each in sources)


def go_environment(build: Path, temporary: Path) -> dict[str, str]:
    """Environment of `go`: the user's proxies and certificates, but not their build settings."""
    # Variables that would change the result, or write outside our folders, are set or removed.
    foreign = ("GOROOT", "GOBIN", "GOOS", "GOARCH", "GOEXPERIMENT", "GOAMD64", "GOARM64", "GODEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return kept | {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": " ".join(BUILD_FLAGS),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOPATH": str(build),
        "GOMODCACHE": str(build / "modules"),
        "GOCACHE": str(build / "objects"),
        "GOTMPDIR": str(temporary),
        # The compiler collects garbage half as often: a sixth less CPU for a tenth more memory.
        "GOGC": kept.get("GOGC", "200"),
    }


def keep(tool: Tool, module: Path, folder: Path) -> None:
    """Copy the files of a module that are needed at run time; scripts become executable.

    Raises UcpError.
    """
    for name in tool.keep:
        source, target = module / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile)
        elif source.is_file():
            shutil.copyfile(source, target)
            # Module archives contain no permissions.
            target.chmod(0o755 if target.suffix == ".sh" else 0o644)
        else:
            raise UcpError(
                f"{tool.name} {tool.version} does not contain {name}, which the catalogue requires",
                next="this is a bug in k8s-ucp: please report it",
            )


def replace_by_edited_copy(tool: Tool, module: Path, work: Path) -> None:
    """Make go.mod in `work` use an edited copy of the module, because caches can't be edited."""
    copy = work / "source"
    shutil.copytree(module, copy, copy_function=shutil.copyfile)
    for edit in tool.edits:
        apply_edit(edit, copy, f"{tool.name} {tool.version}")
    with (work / "go.mod").open("a", encoding="utf-8") as file:
        file.write(f"\nreplace {tool.module} => ./source\n")


def apply_edit(edit: Edit, folder: Path, whose: str) -> None:
    """Change one file. Raises UcpError if the text doesn't occur exactly `edit.times` times."""
    path = folder / edit.path
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        found = f"the file can't be read: {error.strerror}"
    else:
        count = text.count(edit.old)
        if count == edit.times:
            path.chmod(0o644)
            path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
            return
        found = f"{edit.old!r} occurs {count} times instead of {edit.times}"
    raise UcpError(
        f"the patch of {edit.path} does not apply to {whose}: {found}",
        next="this is a bug in k8s-ucp: please report it",
    )


def describe(
    recipe: Recipe, name: str, compiler: Compiler | None, since: float, at: Path
) -> StoreEntry:
    """Content of entry.json for the finished folder `at`. since: start on time.monotonic()"""
    return StoreEntry(
        name=name,
        tool=recipe.tool.name,
        version=recipe.version,
        digest=recipe.digest,
        compiler=compiler.version if compiler and recipe.is_built else "",
        seconds=round(time.monotonic() - since, 1),
        sha256={each: file_hash(at / "bin" / each) for each in recipe.programs},
        keeps_module=(at / "module").is_dir(),
        source="release" if recipe.assets else "",
    )


def require_room(cache: Path, tools: Mapping[str, int]) -> None:
    """Raise UcpError if the disk has no space for first builds. tools: name -> megabytes."""
    free = shutil.disk_usage(cache).free // 10**6
    needed = sum(tools.values())
    if free < needed:
        raise no_room(
            f"building {', '.join(tools)} needs about {needed / 1000:.1f} GB in "
            f"{cache}, but only {free / 1000:.1f} GB are free"
        )


def _go_name(package: str) -> str:
    """The name that `go build` gives a program: the last part of its path but the version."""
    *rest, last = package.split("/")
    return rest[-1] if rest and last[0] == "v" and last[1:].isdigit() else last
