"""A ucp with other pins: the current code with other versions of some tools in its catalogue.

Runs as a program; `NEWER_PINS` contains the versions: `crossplane=99.0.0 kubernetes=1.35.99`. Newer
versions are invented, and different in each process because all of them share the cache.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from k8s_ucp.tools import catalogue
from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.go.compiler import Compiler, find_compiler
from k8s_ucp.tools.recipe import Recipe, needed_compiler, recipe_of
from k8s_ucp.tools.store import ToolStore

if TYPE_CHECKING:
    from tests.e2e.world import Workbench

VARIABLE = "NEWER_PINS"
COMMAND = (sys.executable, str(Path(__file__).resolve()))
FAILING = """\
#!/bin/sh
{unless} && exec "$0-itself" "$@"
echo 'this version is broken' >&2
exit 1
"""


def made_up(number: int) -> dict[str, str]:
    """Invented newer versions that no other process uses; a higher number gives a newer version."""
    kubernetes = f"{catalogue.CATALOGUE['kubernetes'].version}{number}{os.getpid()}"
    return {"crossplane": f"{number}.0.{os.getpid()}", "kubernetes": kubernetes}


def with_versions(pins: Mapping[str, str]) -> dict[str, Tool]:
    """The catalogue with these versions, by tool."""
    tools = {name: replace(catalogue.CATALOGUE[name], version=pins[name]) for name in pins}
    return {**catalogue.CATALOGUE, **tools}


@contextmanager
def installed(
    cache: Path,
    pins: Mapping[str, str],
    *,
    broken: Collection[str] = (),
    edited: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    really: Mapping[str, Path] = MappingProxyType({}),
    unless: str = "false",
) -> Iterator[None]:
    """Add other versions to the cache: today's programs under other names. Those in `broken` fail.

    edited: name of a kept file -> a text in it, and its replacement.
    really: tool -> folder of an entry in another cache whose programs are used.
    unless: a shell command; if it succeeds, a broken program runs all the same.
    The entries are removed afterwards, because others use the cache, too.
    """
    store, made = ToolStore(cache), []
    try:
        for name, tool in with_versions(pins).items():
            if name in pins:
                origin = really.get(name) or _today(store, name)
                failing = dict.fromkeys(broken, FAILING.format(unless=unless))
                made.append(_install(store, tool, origin, failing=failing, edited=edited))
        yield
    finally:
        for folder in made:
            shutil.rmtree(folder)


def _today(store: ToolStore, tool: str) -> Path:
    """Folder of the cache entry for the version that this ucp pins."""
    recipe = recipe_of(catalogue.CATALOGUE[tool])
    found = store.get(recipe.entry_name(_compiler(recipe))) or store.find(tool, recipe.digest)
    assert found is not None
    return store.folder(found.name)


def _compiler(recipe: Recipe) -> Compiler | None:
    assert recipe.module_folder is not None
    return find_compiler(needed_compiler(recipe.module_folder))


def _install(
    store: ToolStore,
    tool: Tool,
    origin: Path,
    *,
    failing: Mapping[str, str],
    edited: Mapping[str, tuple[str, str]],
) -> Path:
    after = recipe_of(tool)
    found = ToolStore(origin.parent.parent).get(origin.name)
    assert found is not None
    name = after.entry_name(_compiler(after))
    # Without the lock, a start in another test would remove the partial folder.
    with store.lock(name, 60, lambda holder: None):
        partial = store.folder(f"{name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        # Processes are recognized by their path, so hard links are sufficient.
        shutil.copytree(origin, partial, copy_function=os.link)
        (partial / "entry.json").unlink()
        for program in set(tool.programs) & set(failing):
            path = partial / "bin" / program
            path.rename(path.with_name(f"{program}-itself"))
            path.write_text(failing[program])
            path.chmod(0o755)
        for file, (old, new) in edited.items():
            for path in partial.rglob(file):
                text = path.read_text()
                assert old in text
                path.unlink()  # It is a hard link to a shared file.
                path.write_text(text.replace(old, new))
        shutil.rmtree(store.folder(name), ignore_errors=True)
        store.publish(replace(found, name=name, version=tool.version, digest=after.digest), partial)
    return store.folder(name)


@contextmanager
def newer(world: Workbench, pins: Mapping[str, str]) -> Iterator[None]:
    """Run the world's commands as those of a ucp with these pins."""
    before = world.command
    world.command = COMMAND
    world.environment[VARIABLE] = " ".join(f"{name}={version}" for name, version in pins.items())
    try:
        yield
    finally:
        world.command = before
        del world.environment[VARIABLE]


def take_pins() -> None:
    """Use the pins of the environment variable in this process."""
    pins = dict(each.split("=") for each in os.environ.get(VARIABLE, "").split())
    cast(dict[str, Tool], catalogue.CATALOGUE).update(with_versions(pins))


def main() -> None:
    take_pins()
    from k8s_ucp.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
