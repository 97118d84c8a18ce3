"""Inserts and deletes parts of a YAML text at the marks of its nodes. Pure functions.

Nodes are those of `reading.compose`. The end mark of a block list or map is where the next node
begins, so comments and empty lines in between must be left to what follows.
"""

from __future__ import annotations

import re
from typing import Any

_OURS = object()


def child(node: Any, key: str, *, missing: Any = _OURS) -> Any:
    """The value of a key. If there is none: `missing`, or raises LookupError."""
    for name, value in _pairs(node):
        if name.value == key:
            return value
    if missing is _OURS:
        raise LookupError(key)
    return missing


def items_of(node: Any) -> list[Any]:
    """Items of a list; none if the node is something else."""
    return list(node.value) if node is not None and node.id == "sequence" else []


def line_end(text: str) -> str:
    """Line ending of a text: CRLF if it has any."""
    return "\r\n" if "\r\n" in text else "\n"


def indentation_of_lists(spec: Any) -> int:
    """Columns between a key and the hyphens of its list, as in the file."""
    for name, value in _pairs(spec):
        if value.id == "sequence" and not value.flow_style and value.value:
            return int(value.start_mark.column - name.start_mark.column)
    return 2


def append_items(text: str, node: Any, blocks: list[list[str]], flows: list[str]) -> str:
    """Append items to a list that is not empty."""
    last = node.value[-1]
    if node.flow_style:
        offset = last.end_mark.index
        return "".join([text[:offset], *(f", {each}" for each in flows), text[offset:]])
    column = node.start_mark.column
    lines = [
        f"{'  ' if number else '- '}{each}" for block in blocks for number, each in enumerate(block)
    ]
    return _insert_lines(text, _end_of(text, last), lines, column)


def append_key(text: str, node: Any, block: list[str], flow: str) -> str:
    """Append a key to a map. Raises LookupError for an empty block."""
    pairs = _pairs(node)
    if not pairs and not node.flow_style:
        raise LookupError("an empty map")
    if node.flow_style:
        offset = pairs[-1][1].end_mark.index if pairs else node.start_mark.index + 1
        return f"{text[:offset]}{', ' if pairs else ''}{flow}{text[offset:]}"
    key, value = pairs[-1]
    offset = max(_end_of(text, value), _end_of_line(text, key.end_mark.index))
    return _insert_lines(text, offset, block, key.start_mark.column)


def remove_item(text: str, node: Any, index: int) -> str:
    """Remove an item of a list that has others. Raises LookupError."""
    items = node.value
    if node.flow_style:
        if index + 1 < len(items):
            begin, end = items[index].start_mark.index, items[index + 1].start_mark.index
        else:
            begin, end = items[index - 1].end_mark.index, items[index].end_mark.index
        return text[:begin] + text[end:]
    hyphen = text.rindex("-", 0, items[index].start_mark.index)
    begin = text.rfind("\n", 0, hyphen) + 1
    if text[begin:hyphen].strip():
        raise LookupError("it shares its line")
    return text[:begin] + text[_end_of(text, items[index]) :]


def remove_key(text: str, node: Any, key: str) -> str:
    """Remove a key of a map, with its value."""
    pairs = _pairs(node)
    index = next(number for number, pair in enumerate(pairs) if pair[0].value == key)
    name, value = pairs[index]
    if node.flow_style:
        if index + 1 < len(pairs):
            begin, end = name.start_mark.index, pairs[index + 1][0].start_mark.index
        else:
            begin = pairs[index - 1][1].end_mark.index if index else name.start_mark.index
            end = value.end_mark.index
        return text[:begin] + text[end:]
    begin = text.rfind("\n", 0, name.start_mark.index) + 1
    return text[:begin] + text[max(_end_of(text, value), _end_of_line(text, name.end_mark.index)) :]


def _pairs(node: Any) -> list[tuple[Any, Any]]:
    return list(node.value) if node is not None and node.id == "mapping" else []


def _end_of(text: str, node: Any) -> int:
    """Start of the line after a node, before comments and empty lines that follow."""
    begin, end = node.start_mark.index, node.end_mark.index
    if node.id == "scalar" or node.flow_style:
        return _end_of_line(text, end)
    lines = list(re.finditer(r"[^\n]*\n?", text[begin:end]))
    for line in reversed(lines):
        words = line[0].strip()
        if words and not words.startswith("#"):
            return _end_of_line(text, begin + line.start())
    return _end_of_line(text, begin)


def _end_of_line(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1


def _insert_lines(text: str, offset: int, lines: list[str], column: int) -> str:
    end = line_end(text)
    return text[:offset] + "".join(f"{' ' * column}{each}{end}" for each in lines) + text[offset:]
