"""Follows the pages of docs/walkthroughs literally."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.e2e.world import Workbench

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "walkthroughs"

REMOVAL = re.compile(r"ucp (?:app|env|team) remove ")


def blocks(page: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", (FOLDER / f"{page}.md").read_text("utf-8"), re.S)


def lines(page: str) -> list[str]:
    """The commands of a page, in order."""
    return [line for each in blocks(page) for line in each.splitlines() if line.startswith("ucp ")]


def follow(
    world: Workbench, page: str, before: Mapping[str, Callable[[], None]] | None = None
) -> dict[str, str]:
    """Run every command of a page: {command: output}. before: a check to run ahead of a command."""
    found = {}
    for line in lines(page):
        if before and line in before:
            before[line]()
        # A reader has a terminal, on which these commands ask.
        asked = ["--yes"] if REMOVAL.match(line) else []
        done = world.ucp(*shlex.split(line)[1:], *asked, timeout=400)
        found[line] = done.stdout + done.stderr
    return found


def healthy(world: Workbench, name: str) -> bool:
    found = world.application(name)
    return found is not None and (found["sync"], found["health"]) == ("Synced", "Healthy")
