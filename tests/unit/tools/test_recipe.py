"""The name of a cache entry depends on everything that can change the result."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from k8s_ucp.tools import recipe as recipes
from k8s_ucp.tools.catalogue import Edit, Tool, Wheel
from k8s_ucp.tools.go.compiler import Compiler
from k8s_ucp.tools.recipe import needed_compiler, recipe_of

TOOL = Tool(
    name="tiny",
    version="1.0.0",
    programs={"tiny": "example.org/tiny"},
    module="example.org/tiny",
    variables={"main.version": "1"},
    edits=(Edit("main.go", "a", "b"),),
    keep=("manifests",),
)
COMPILER = Compiler(Path("/go/bin/go"), "go1.27.3")


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.org/tiny\n\ngo 1.26.3\n")
    (folder / "go.sum").write_text("")
    (folder / "main.go").write_text("package main\n")
    return tmp_path


def name(tool: Tool, modules: Path, compiler: Compiler = COMPILER) -> str:
    return recipe_of(tool, modules).entry_name(compiler)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.0.1"},
        {"programs": {"tiny": "example.org/other"}},
        {"programs": {"other": "example.org/tiny"}},
        {"variables": {"main.version": "2"}},
        {"edits": ()},
        {"edits": (Edit("main.go", "a", "c"),)},
        {"edits": (Edit("main.go", "a", "b", times=2),)},
        {"keep": ()},
    ],
    ids=str,
)
def test_a_changed_catalogue_gives_another_entry(modules: Path, change: dict[str, object]) -> None:
    changed = dataclasses.replace(TOOL, **change)  # type: ignore[arg-type]
    assert name(changed, modules) != name(TOOL, modules)


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go", "more.go"])
def test_a_changed_source_file_gives_another_entry(modules: Path, file: str) -> None:
    before = name(TOOL, modules)
    with (modules / "tiny" / file).open("a") as stream:
        stream.write("// changed\n")
    assert name(TOOL, modules) != before


def test_another_compiler_gives_another_entry(modules: Path) -> None:
    newer = Compiler(COMPILER.program, "go1.27.4")
    assert name(TOOL, modules, newer) != name(TOOL, modules)


@pytest.mark.parametrize(("attribute", "value"), [("FORMAT", 99), ("BUILD_FLAGS", ("-race",))])
def test_other_build_flags_or_formats_give_another_entry(
    modules: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, value: object
) -> None:
    before = name(TOOL, modules)
    monkeypatch.setattr(recipes, attribute, value)
    assert name(TOOL, modules) != before


def test_the_same_inputs_give_the_same_entry_wherever_the_compiler_is(modules: Path) -> None:
    moved = Compiler(Path("/elsewhere/go"), COMPILER.version)
    (modules / "tiny" / "README.md").write_text("not part of a build")
    assert name(TOOL, modules, moved) == name(TOOL, modules)
    assert name(TOOL, modules).startswith("tiny-1.0.0-")


def test_an_installed_wheel_is_preferred_to_a_build(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = dataclasses.replace(TOOL, wheel=Wheel("tinywheel", "tinywheel/bin/tiny"))
    assert recipe_of(tool, modules).is_built
    site = tmp_path / "site"
    (site / "tinywheel-6.2.9.dist-info").mkdir(parents=True)
    program = site / "tinywheel" / "bin" / "tiny"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    monkeypatch.syspath_prepend(str(site))
    assert recipe_of(tool, modules).is_built, "a file that can't be run is no program"
    program.chmod(0o755)
    found = recipe_of(tool, modules)
    assert (found.is_built, found.wheel_file, found.version) == (False, program, "6.2.9")
    assert found.entry_name(None) == found.entry_name(COMPILER)


def test_the_oldest_compiler_is_read_from_go_mod(modules: Path) -> None:
    assert needed_compiler(modules / "tiny") == (1, 26, 3)
