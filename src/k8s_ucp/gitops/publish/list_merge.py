"""Merges lists of generated files item by item, since a line-based merge would conflict. Pure.

Both sides often append to the same short list: a user commits the environment `eu`, the next render
adds `qa`. So the items of known lists are removed from the text, merged as an ordered set, and put
back; the rest of the text is merged as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_LIST = re.compile(
    r"^(?P<lead> *(?:- )?)(?P<key>resources|components|literals|environments):"
    r"(?P<empty> *\[\])?(?P<tail> *(?:#.*)?)$"
)
_GENERATOR = re.compile(r"^ *- name: *(?P<name>\S+)")
_NAMED = re.compile(r"^(?:\{ *)?name: *(?P<name>[^,} #]+)")


class ItemConflict(Exception):
    """Both sides changed the same item of a list, or a list can't be put back."""


@dataclass(frozen=True)
class ListSpan:
    """A list in a text: `lines[start:end]` are its items; line start-1 contains its key."""

    name: str
    start: int
    end: int
    indent: str
    items: dict[str, str]
    """{identity of an item: its lines, including comments above it, without indentation}."""


def merge_lists(
    base: str,
    ours: str,
    theirs: str,
    *,
    keep: Callable[[str], bool],
    merge_text: Callable[[str, str, str], str],
) -> str:
    """Three-way merge of a file with lists: ours is the repository's, theirs the new render's.

    keep: whether an item that the render no longer contains is kept. merge_text: merges the rest of
    the text and raises on conflicts. Raises ItemConflict.
    """
    texts = [text.split("\n") for text in (base, ours, theirs)]
    found = [_lists(lines) for lines in texts]
    names = [name for name in found[2] if all(name in each for each in found)]
    merged = {
        name: _merge_items(*(each[name].items for each in found), keep=keep) for name in names
    }
    indents = {name: found[1 if found[1][name].items else 2][name].indent for name in names}
    skeletons = [
        _without(lines, [each[name] for name in names])
        for lines, each in zip(texts, found, strict=True)
    ]
    text = merge_text(*skeletons)
    for name, items in merged.items():
        text = _with_list(text, name, list(items.values()), indents[name])
    return text


def _lists(lines: list[str]) -> dict[str, ListSpan]:
    """Lists by name; duplicate names are left out."""
    found: dict[str, ListSpan] = {}
    twice = set()
    generator = ""
    for number, line in enumerate(lines):
        named = _GENERATOR.match(line)
        generator = named["name"] if named else generator
        match = _LIST.match(line)
        if not match:
            continue
        name = match["key"] if match["key"] != "literals" else f"literals of {generator}"
        twice.update({name} & found.keys())
        one = _items(lines, number + 1, len(match["lead"]), name)
        # Skip a key without a value or with another kind of value: an empty list is written as
        # `[]`.
        if one and bool(one.items) != bool(match["empty"]):
            found[name] = one
    return {name: each for name, each in found.items() if name not in twice}


def _items(lines: list[str], start: int, least: int, name: str) -> ListSpan | None:
    """The items below a key at column `least`; None if an item has no identity of its own."""
    items: dict[str, str] = {}
    held: list[str] = []
    current: str | None = None
    indent, end = None, start
    for number in range(start, len(lines)):
        line = lines[number]
        stripped = line.lstrip(" ")
        depth = len(line) - len(stripped)
        if not stripped or stripped.startswith("#"):
            held.append(line)
            continue
        if indent is None and stripped.startswith("- ") and depth >= least:
            indent = depth
        if indent is None or depth < indent or (depth == indent and not stripped.startswith("- ")):
            break
        if depth == indent:
            current = _identity(stripped[2:])
            if not current or current in items:
                return None
            items[current] = "\n".join(each[_depth(each, depth) :] for each in [*held, line])
        elif current is not None:
            more = "\n".join(each[_depth(each, indent) :] for each in [*held, line])
            items[current] += f"\n{more}"
        held, end = [], number + 1
    return ListSpan(name, start, end, " " * (indent or 0), items)


def _depth(line: str, most: int) -> int:
    return min(most, len(line) - len(line.lstrip(" ")))


def _identity(text: str) -> str:
    named = _NAMED.match(text)
    value = named["name"] if named else re.sub(r"(?<! ) ++#.*$", "", text)
    return value.strip().strip("\"'")


def _merge_items(
    base: Mapping[str, str],
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    *,
    keep: Callable[[str], bool],
) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, text in ours.items():
        before, after = base.get(name), theirs.get(name)
        if after is None and before is not None and not keep(name):
            if text != before:
                raise ItemConflict(f"{name}: changed in the repository, removed in the render")
            continue
        if after is None or before is None or after in (before, text):
            result[name] = text
        elif text == before:
            result[name] = after
        else:
            raise ItemConflict(f"{name}: changed on both sides")
    order = list(theirs)
    for index, name in enumerate(order):
        if name not in ours and name not in base:
            result = _insert_after(result, name, theirs[name], order[:index])
    return result


def _insert_after(
    items: dict[str, str], name: str, text: str, earlier: list[str]
) -> dict[str, str]:
    """`items` with one more, after the last one of `earlier` among them, else at the end."""
    names = list(items)
    indexes = [names.index(each) for each in earlier if each in items]
    index = max(indexes) + 1 if indexes else len(names)
    names.insert(index, name)
    return {each: items.get(each, text) for each in names}


def _marker(name: str) -> str:
    return f"#k8s-ucp-list {name}#"


def _without(lines: list[str], lists: list[ListSpan]) -> str:
    """The text with a marker in place of each list's items, and without `[]`."""
    lines = list(lines)
    for each in sorted(lists, key=lambda one: one.start, reverse=True):
        head = lines[each.start - 1]
        match = _LIST.match(head)
        assert match
        lines[each.start - 1] = f"{match['lead']}{match['key']}:{match['tail']}"
        lines[each.start : each.end] = [_marker(each.name)]
    return "\n".join(lines)


def _with_list(text: str, name: str, items: list[str], indent: str) -> str:
    marker = _marker(name)
    if text.count(marker) != 1:
        raise ItemConflict(f"{name}: the list is not where it was")
    if items:
        lines = "\n".join(items).split("\n")
        block = "\n".join(indent + line if line.strip() else line for line in lines)
        return text.replace(marker, block)
    head, _, rest = text.partition("\n" + marker)
    line_start = head.rfind("\n") + 1
    key, colon, tail = head[line_start:].partition(":")
    return f"{head[:line_start]}{key}{colon} []{tail}{rest}"
