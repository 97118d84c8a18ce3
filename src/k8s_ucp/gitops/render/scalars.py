"""Values as YAML writes them, so that none can leave its field. Pure."""

from __future__ import annotations

import re

from k8s_ucp.errors import UsageError

# Plain where every YAML parser reads it as the same text: starts with a letter, is no word that
# YAML 1.1 or 1.2 gives a meaning, holds no indicator.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./=-]*|(\.\./)+[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scalar(value: object) -> str:
    """A str, int or bool as a YAML scalar on one line that stands for exactly that value.

    Raises UsageError for text that YAML can't hold (a lone surrogate).
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"no YAML scalar for {type(value).__name__}")
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(_character(each) for each in value) + '"'


def _character(each: str) -> str:
    if each in _ESCAPES:
        return _ESCAPES[each]
    code = ord(each)
    if 0xD800 <= code <= 0xDFFF:
        raise UsageError(
            f"a value contains the character U+{code:04X}, which YAML files can't contain"
        )
    if each.isprintable() and code != 0xFEFF:
        return each
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
