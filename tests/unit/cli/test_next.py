"""Commands that messages suggest as `next` exist and accept the suggested flags."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from k8s_ucp.cli import main, tools
from k8s_ucp.cli.command import Invocation
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.inspect.doctor.advice import NEXT, NEXT_BY_KIND
from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.toolbox import Toolbox
from tests.sources import modules
from tests.unit.gitops.topologies import demo

OPTIONS = ("--help",)
PROSE = ("and", "by", "installs", "is", "on", "or", "that", "use")
"""Words that follow `ucp` in prose, where no command is meant."""


def advice() -> Iterator[tuple[str, str]]:
    """(file, text) of every `next`; a value inserted at run time is a {}."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "next":
                yield from ((path, text) for text in texts(node.value))
    yield from (("doctor.advice", text) for text in (*NEXT.values(), *NEXT_BY_KIND.values()))


def texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body), *texts(node.orelse))


def test_paths_in_suggested_commands_are_quoted_for_a_shell() -> None:
    """Quotes in the text itself end at an apostrophe in the path."""
    unsafe = re.compile(r"\b(?:chmod|config|cp|curl|df|mv|op read|rm)\b[ \w.-]*'\{\}'")
    found = [
        (path, text)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for text in texts(node)
        if unsafe.search(text)
    ]
    assert not found
    path = "/srv/o'neil's work/ports.json"
    assert shlex.split(command_line("rm", "-r", path)) == ["rm", "-r", path]


def command(words: list[str]) -> tuple[Any, list[str]]:
    """The command at the start of `words`, and the remaining words."""
    found = typer.main.get_command(main.app).commands.get(words[0])
    assert found is not None, words
    found, rest = main._load(words[0], []), words[1:]
    while rest and rest[0] in getattr(found, "commands", {}):
        found, rest = found.commands[rest[0]], rest[1:]
    return found, rest


def test_every_suggested_command_exists_with_its_flags() -> None:
    everywhere = {flag for each in typer.main.get_command(main.app).params for flag in each.opts}
    seen = 0
    for file, text in advice():
        for said in re.findall(r"(?<!-)\bucp ((?:[a-z]+ ?)+[^;,:`()]*)", text):
            words = said.split()
            if words[0] not in main.COMMANDS:
                # "a ucp that brings ...", "which ucp is ...": no command.
                assert words[0] in PROSE, (file, text)
                continue
            found, rest = command(words)
            assert not getattr(found, "commands", {}), (file, text)
            flags = {flag for each in found.params for flag in each.opts} | everywhere
            for each in rest:
                flag = each.partition("=")[0].strip("().")
                if re.fullmatch(r"--[a-z-]+", flag):
                    assert flag in {*flags, *OPTIONS}, (file, text)
            seen += 1
    assert seen > 40


def test_a_missing_program_suggests_the_command_that_installs_it(tmp_path: Path) -> None:
    """An add-on's chart needs helm, which a start without charts doesn't install."""
    with pytest.raises(UcpError) as refused:
        Installer(tmp_path, lambda _: None).find(("kustomize", "helm"))
    assert refused.value.next == "ucp tools install kustomize helm"
    for tool in CATALOGUE.values():
        for program in tool.programs:
            with pytest.raises(UcpError) as refused:
                Toolbox({}, {}).path(program)
            assert refused.value.next == f"ucp tools install {tool.name}"


def test_tools_install_installs_what_the_topology_needs(tmp_path: Path) -> None:
    context = typer.Context(typer.main.get_command(tools.app), obj=Invocation(tmp_path))
    assert tools._needed(context) == EMBEDDED
    rollouts = demo(addons={"argo-rollouts": True})
    (tmp_path / "ucp.yaml").write_text(rollouts.model_dump_json(by_alias=True, exclude_unset=True))
    assert set(tools._needed(context)) == {*EMBEDDED, "argo-rollouts"}
