"""`directory.include` and `directory.exclude` of an Application: which files they select. Pure.

In these patterns, `*` also matches slashes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

_PIECE = re.compile(r"\*+|\?|\[!?[^\]\[\\!]+\]|\\.|[{},]|[^\\\[\]]", re.DOTALL)


def takes_all(directory: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Every file of a folder is included and none excluded.

    False if a pattern is not understood.
    """
    include, exclude = (directory.get(each) for each in ("include", "exclude"))
    names = list(names)
    if is_slow(names, max(map(_stars, (str(include), str(exclude))))):
        return False
    included = _pattern(str(include)) if include else re.compile(".*", re.DOTALL)
    excluded = _pattern(str(exclude)) if exclude else None
    if included is None or (exclude and excluded is None):
        return False
    return all(
        included.fullmatch(name) and not (excluded and excluded.fullmatch(name)) for name in names
    )


_MOST_STEPS = 1e8


def is_slow(texts: Iterable[str], stars: int) -> bool:
    """Whether a comparison with a pattern may take Python minutes, or years.

    stars: those that may match the same characters.
    """
    return any(len(each) ** stars > _MOST_STEPS for each in texts)


def _stars(glob: str) -> int:
    """Stars that may match the same characters: of alternatives, those of one."""
    of_one = re.sub(r"\{([^{}]*)\}", lambda found: max(found[1].split(","), key=_runs), glob)
    return _runs(of_one)


def _runs(glob: str) -> int:
    return sum(key == "*" for key, _ in itertools.groupby(glob))


def _pattern(glob: str) -> re.Pattern[str] | None:
    """The pattern as a regular expression; None if it is not understood."""
    text, depth, end = "", 0, 0
    for match in _PIECE.finditer(glob):
        if match.start() != end:
            return None
        end, piece = match.end(), match[0]
        depth += (piece == "{") - (piece == "}")
        if depth < 0:
            return None
        text += _translated(piece, inside=depth > 0)
    if end < len(glob) or depth:
        return None
    try:
        return re.compile(text, re.DOTALL)
    except re.error:  # Such as `[z-a]`.
        return None


def _translated(piece: str, *, inside: bool) -> str:
    """inside: within braces, where a comma separates alternatives."""
    if piece[0] == "*":
        return ".*"
    if piece == "?":
        return "."
    if piece in "{}":
        return "(?:" if piece == "{" else ")"
    if piece == "," and inside:
        return "|"
    if piece[0] == "[":
        return f"[^{piece[2:]}" if piece[1] == "!" else piece
    return re.escape(piece[-1])
