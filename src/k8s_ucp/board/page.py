"""The files of the page: written by hand, read from the package, no external resources."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

TYPES = {
    "board.css": "text/css; charset=utf-8",
    "board.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Static files."""


@cache
def asset(name: str) -> bytes:
    """Content of one of TYPES."""
    return (files(__package__) / "assets" / name).read_bytes()


def page(topology: str, csrf: str, *, may_change: bool) -> bytes:
    """The page itself. csrf: token that its script sends with every change."""
    text = asset("board.html").decode()
    words = {
        "{topology}": escape(topology),
        "{csrf}": escape(csrf),
        "{mode}": "write" if may_change else "read-only",
    }
    for placeholder, value in words.items():
        text = text.replace(placeholder, value)
    return text.encode()
