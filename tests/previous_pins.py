"""The versions that were pinned before today's: built by ucp's own installer, for upgrade tests.

`python -m tests.previous_pins` builds them in about 15 minutes into a cache of their own beside the
cache that all tests share. Their go.mod and go.sum are derived from the programs' own go.mod.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from k8s_ucp.tools.build import go_environment
from k8s_ucp.tools.catalogue import CATALOGUE, Tool
from k8s_ucp.tools.go.compiler import find_compiler
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import MODULES, ToolProgress
from k8s_ucp.tools.store import ToolStore
from k8s_ucp.tools.toolbox import Toolbox
from tests.conftest import CACHE
from tests.e2e.newer_ucp import installed

VERSIONS: Mapping[str, str] = {"kubernetes": "1.34.4", "argocd": "3.5.6", "crossplane": "2.3.3"}
"""Kubernetes: one minor below the pinned version, since it is upgraded one minor at a time."""
_MAIN: Mapping[str, str] = {"kubernetes": "k8s.io/kubernetes"}
"""Modules whose folder the catalogue doesn't name."""
STORE = ToolStore(CACHE / "before")
"""Separate from the shared cache: every command cleans up builds there and prunes unknown ones."""
FOLDER = STORE.cache / "-".join(["modules", *VERSIONS.values()])
"""Their go.mod and go.sum, in a folder for each program; created once."""


def tools(now: Mapping[str, Tool] = CATALOGUE) -> dict[str, Tool]:
    """Today's catalogue with the earlier versions, also where a version is a build argument."""
    # kwok keeps today's version: it is passed each cluster's Kubernetes version.
    return {**now, **{name: _at(now[name], now[name].version, VERSIONS[name]) for name in VERSIONS}}


def _at(tool: Tool, now: str, before: str) -> Tool:
    variables = {name: value.replace(now, before) for name, value in tool.variables.items()}
    minors = {name: before.split(".")[1] for name in variables if name.endswith(".gitMinor")}
    return replace(tool, version=before, variables={**variables, **minors})


@contextmanager
def ready() -> Iterator[Toolbox]:
    """Install the earlier programs where a ucp with these pins looks for them.

    Missing ones are built. Yields them as they are in their own cache.
    """
    found = build(tuple(VERSIONS))
    really = {tool: STORE.folder(entry) for tool, entry in found.entries.items()}
    with installed(CACHE, VERSIONS, really=really):
        yield found


def build(names: Collection[str]) -> Toolbox:
    """Build the programs that are missing. Raises UcpError."""
    STORE.make()
    make_modules()
    return _installer().install(names)


def _installer() -> Installer:
    return Installer(STORE.cache, _tell, catalogue=tools(), modules=FOLDER)


def _tell(progress: ToolProgress) -> None:
    print(f"{progress.tool} {progress.version}: {progress.phase} {progress.detail}", flush=True)


def make_modules() -> None:
    """Write the go.mod and go.sum of each program if they are missing."""
    for name in VERSIONS:
        target = FOLDER / name
        if target.exists():
            continue
        with tempfile.TemporaryDirectory(prefix="ucp-before-") as temporary:
            folder = Path(temporary) / name
            (Path(temporary) / "tmp").mkdir()
            folder.mkdir()
            _make_module(tools()[name], folder, STORE.build)
            partial = FOLDER.with_name(f"{FOLDER.name}.{os.getpid()}") / name
            shutil.copytree(folder, partial)
            FOLDER.mkdir(exist_ok=True)
            partial.rename(target)
            partial.parent.rmdir()


def _make_module(tool: Tool, folder: Path, build: Path) -> None:
    compiler = find_compiler(())
    assert compiler

    def go(*words: str) -> Any:
        environment = {**go_environment(build, folder.parent / "tmp"), "GOFLAGS": "-modcacherw"}
        done = subprocess.run(
            [compiler.program, *words], cwd=folder, env=environment, check=True, stdout=-1
        )
        return json.loads(done.stdout) if "-json" in words else done.stdout

    today = (MODULES / tool.name / "go.mod").read_text("utf-8")
    main, now = tool.module or _MAIN[tool.name], CATALOGUE[tool.name].version
    its_own = go("mod", "download", "-json", f"{main}@v{tool.version}")["GoMod"]
    said = go("mod", "edit", "-json", its_own)
    required = re.findall(rf"^(?:require |\t)(\S+) v{re.escape(now)}$", today, re.MULTILINE)
    engine = re.findall(r"^replace (\S+) => (\S+ v0\.0\.0-\S+)$", today, re.MULTILINE)
    lines = [
        f"module k8s-ucp.io/tools/{tool.name}",
        f"go {said['Go']}",
        *re.findall(r"^godebug .*$", Path(its_own).read_text("utf-8"), re.MULTILINE),
        *(f"require {each} v{tool.version}" for each in required),
        *(f"tool {each}" for each in tool.programs.values()),
        *(f"replace {each} => {to}" for each, to in engine),
        *_replacements(said, tool.version, {each for each, _ in engine}),
    ]
    (folder / "go.mod").write_text("\n".join(lines) + "\n", encoding="utf-8")
    go("list", "-mod=mod", "-deps", "tool")


def _replacements(said: Mapping[str, Any], version: str, without: set[str]) -> list[str]:
    """Replacements of the program's own go.mod; modules of its repository have v0 versions."""
    found = []
    for each in said.get("Replace") or ():
        old, new = each["Old"]["Path"], each["New"]
        if old in without or "/crossplane/" in old:
            continue
        at = new.get("Version") or f"v0.{version.partition('.')[2]}"
        found.append(f"replace {old} => {old if new['Path'][0] == '.' else new['Path']} {at}")
    return found


if __name__ == "__main__":
    build(sys.argv[1:] or tuple(VERSIONS))
