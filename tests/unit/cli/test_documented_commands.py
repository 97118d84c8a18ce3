"""The commands that README.md and docs/ show exist, with the flags that they are shown with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from k8s_ucp.cli import main

ROOT = Path(__file__).parents[3]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "walkthroughs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
)
BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
IN_A_LINE = re.compile(r"(?:^|[|&;(]|run:) *(ucp [^|&;#\n]*)", re.MULTILINE)


def documented(text: str) -> Iterator[str]:
    """The commands in code blocks, and those between backticks."""
    for block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").replace("$ ", "")
        yield from (each.strip() for each in IN_A_LINE.findall(lines))
    yield from re.findall(r"`(ucp [^`]+)`", BLOCK.sub("", text))


@cache
def loaded(name: str) -> Any:
    return main._load(name, [])


def mistake(words: list[str]) -> str | None:
    """The first word after `ucp` that is neither a command nor an option where it stands."""
    root: Any = typer.main.get_command(main.app)
    command = root
    options = {flag: each for each in root.params for flag in each.opts}
    rest = iter(words)
    for word in rest:
        if word.startswith("-"):
            flag, _, value = word.partition("=")
            if flag not in {*options, "--help"}:
                return f"{command.name} has no option {flag}"
            if flag in options and not options[flag].is_flag and not value:
                next(rest, None)
        elif command is root or hasattr(command, "commands"):
            known = main.COMMANDS if command is root else command.commands
            if word not in known:
                return f"{command.name} has no command {word}"
            command = loaded(word) if command is root else command.commands[word]
            options |= {flag: each for each in command.params for flag in each.opts}
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documented_commands_exist_with_their_flags(page: Path) -> None:
    for each in documented(page.read_text("utf-8")):
        found = mistake(shlex.split(each)[1:])
        assert found is None, f"`{each}`: {found}"


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_examples_of_a_help_page_exist_with_their_flags(name: str) -> None:
    pages = [main._load(name, [])]
    for command in pages:
        pages += getattr(command, "commands", {}).values()
        shown = (command.epilog or "").splitlines()[2:]
        for line in shown:
            for each in re.findall(r"\bucp [^)|>#]+", line.partition("  #")[0]):
                assert mistake(shlex.split(each)[1:]) is None, line


def test_mistakes_in_documented_commands_are_found() -> None:
    text = "`ucp stauts`\n```sh\n$ ucp status --fast\nmake x && ucp start --yes\n```\n"
    assert list(documented(text)) == ["ucp status --fast", "ucp start --yes", "ucp stauts"]
    assert mistake(["stauts"]) == "ucp has no command stauts"
    assert mistake(["status", "--fast"]) == "status has no option --fast"
    assert mistake(["start", "--yes"]) is None
