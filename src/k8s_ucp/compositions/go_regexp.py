"""Regular expressions of Go, in Compositions and definitions, as far as Python can. Pure."""

from __future__ import annotations

import re

from k8s_ucp.compositions.function import CompositionError

_CLASS_OR_END = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\$", re.DOTALL)
"""An escaped character, a class of characters, or the end."""
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")
_BY_LINES = re.compile(r"\(\?[a-zA-Z]*m")


def search(pattern: str, value: str) -> re.Match[str] | None:
    """The first match of an expression in a text. Raises CompositionError if Python can't read it.

    In Python, `$` matches before a line break at the end, too; `\\d`, `\\w`, `\\s` and `\\b` match
    by Unicode; and `[[:alpha:]]` has another meaning.
    """

    def as_python(found: re.Match[str]) -> str:
        if _POSIX_CLASS.search(found[0]):
            raise CompositionError(f"the class {found[0]} is not supported; list its characters")
        is_end = found[0] == r"\z" or (found[0] == "$" and not _BY_LINES.search(pattern))
        return r"\Z" if is_end else found[0]

    try:
        return re.search(_CLASS_OR_END.sub(as_python, pattern), value, re.ASCII)
    except (re.error, OverflowError, ValueError, RecursionError) as error:
        raise CompositionError(
            f"the regular expression {pattern!r} is not supported: {error}"
        ) from error
