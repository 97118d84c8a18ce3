"""The pictures of README.md and docs/ are of this code: `make pictures` makes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pictures import board, flow

DOCS = Path(__file__).parents[2] / "docs"


def test_the_flow_is_as_it_is_drawn() -> None:
    assert flow.FILE.read_text("utf-8") == flow.picture(), 'make pictures ARGS="flow"'


def test_the_photograph_is_of_this_board() -> None:
    assert board.made_of() == board.inputs(), 'make pictures ARGS="board"'
    assert board.FILE.stat().st_size <= board.MOST_BYTES


def test_every_picture_is_shown_and_every_shown_one_is_there() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    shown = {
        (page.parent / each).resolve()
        for page in pages
        for each in re.findall(r"!\[[^]]+\]\(([^)#:]+)\)", page.read_text("utf-8"))
    }
    there = {each for each in (DOCS / "pictures").iterdir() if each.suffix in (".svg", ".png")}
    assert shown == there
