"""The pictures in README.md and docs/ are up to date; `make pictures` renders them again."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures import board, flow, session

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_of_the_flow_is_up_to_date() -> None:
    assert flow.FILE.read_text("utf-8") == flow.picture(), 'make pictures ARGS="flow"'


def test_the_picture_of_the_session_matches_its_recording() -> None:
    drawn = session.picture(session.RECORDING.read_text("utf-8"))
    assert session.FILE.read_text("utf-8") == drawn, 'make pictures ARGS="session"'


def test_the_screenshot_of_the_board_is_up_to_date() -> None:
    assert board.made_of() == board.inputs(), 'make pictures ARGS="board"'
    assert board.FILE.stat().st_size <= board.MOST_BYTES


def test_the_picture_of_a_session_keeps_columns_and_wraps_long_lines() -> None:
    drawn = ElementTree.fromstring(session.picture("$ ucp <status>\n  a & b\n" + "x" * 170))
    texts = [each for each in drawn.iter() if each.tag.endswith("text")]
    assert [each.text for each in texts] == ["$ ucp <status>", "a & b", "x" * 120, "x" * 50]
    left, indented = (float(each.get("x", "")) for each in texts[:2])
    assert indented - left == pytest.approx(2 * session.COLUMN)


def test_the_recorded_session_contains_no_local_path() -> None:
    assert not re.search(r"/(tmp|root|home|work)\b", session.RECORDING.read_text("utf-8"))


def test_every_picture_is_used_and_every_used_picture_exists() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    shown = {
        (page.parent / each).resolve()
        for page in pages
        for each in re.findall(r"!\[[^]]+\]\(([^)#:]+)\)", page.read_text("utf-8"))
    }
    there = {each for each in (DOCS / "pictures").iterdir() if each.suffix in (".svg", ".png")}
    assert shown == there
