"""The pictures of README.md and docs/ are of this code: `make pictures` makes them anew."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures import board, flow, session

DOCS = Path(__file__).parents[2] / "docs"


def test_the_flow_is_as_it_is_drawn() -> None:
    assert flow.FILE.read_text("utf-8") == flow.picture(), 'make pictures ARGS="flow"'


def test_the_session_is_as_it_was_recorded() -> None:
    drawn = session.picture(session.RECORDING.read_text("utf-8"))
    assert session.FILE.read_text("utf-8") == drawn, 'make pictures ARGS="session"'


def test_the_photograph_is_of_this_board() -> None:
    assert board.made_of() == board.inputs(), 'make pictures ARGS="board"'
    assert board.FILE.stat().st_size <= board.MOST_BYTES


def test_a_session_keeps_every_word_in_its_columns() -> None:
    drawn = ElementTree.fromstring(session.picture("$ ucp <status>\n  a & b\n" + "x" * 170))
    texts = [each for each in drawn.iter() if each.tag.endswith("text")]
    assert [each.text for each in texts] == ["$ ucp <status>", "a & b", "x" * 120, "x" * 50]
    left, indented = (float(each.get("x", "")) for each in texts[:2])
    assert indented - left == pytest.approx(2 * session.COLUMN)


def test_what_is_shown_names_no_folder_of_the_machine_it_was_made_on() -> None:
    assert not re.search(r"/(tmp|root|home|work)\b", session.RECORDING.read_text("utf-8"))


def test_every_picture_is_shown_and_every_shown_one_is_there() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    shown = {
        (page.parent / each).resolve()
        for page in pages
        for each in re.findall(r"!\[[^]]+\]\(([^)#:]+)\)", page.read_text("utf-8"))
    }
    there = {each for each in (DOCS / "pictures").iterdir() if each.suffix in (".svg", ".png")}
    assert shown == there
