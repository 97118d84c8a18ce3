"""YAML as kubectl and kustomize accept it: what people wrote, in Python's terms. Pure.

Go's parsers take a byte order mark, tabs between a value and a comment or at a line's end, and any
kind of line end; Python's refuse some of it. Only reading is lenient: no file is rewritten.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from k8s_ucp.errors import UsageError

_TAB_AFTER_VALUE = re.compile(r"(?<=\S)[ \t]*\t[ \t]*(?=#|$)", re.MULTILINE)
_TAB_BEFORE_VALUE = re.compile(r"(?<=[:\-,])[ ]*\t[ \t]*(?=\S)")
_BLANK_WITH_TABS = re.compile(r"^[ \t]*\t[ \t]*$", re.MULTILINE)
_INDENTATION = re.compile(r"^[ \t]*(?:[-?][ \t]+)*", re.MULTILINE)
_DEEPEST = 1000
"""Maps and lists in each other: more than anything that Kubernetes takes has."""


_WITH_EXPONENT = re.compile(r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)[eE][-+]?(?:\d{1,2}|[12]\d\d)$")
"""Numbers that PyYAML takes for strings; what is too large stays one, as a commit's id."""
_NO_TEXT_ELSEWHERE = re.compile(
    r"[yYnN]|[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?|0[box][0-9a-fA-F_]+"
)
"""What PyYAML leaves without quotes although others, such as Go's, read a boolean or a number."""


def documents(content: bytes, path: str) -> list[Any]:
    """The YAML documents of a file. Raises UsageError."""
    text = plain_text(content, path)
    try:
        return _load(text)
    except UsageError:
        # Inside quotes and blocks of text this changes what is read, so only where all else fails.
        return _load(_without_tabs(text), path)


def first_map(content: bytes, path: str) -> dict[str, Any]:
    """The first document of a file; empty where that is no map. Raises UsageError."""
    found = documents(content, path)[:1]
    return found[0] if found and isinstance(found[0], dict) else {}


def part(content: Any, key: str) -> Mapping[str, Any]:
    """A map below a map; empty where there is none."""
    found = content.get(key) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def maps(content: Any, key: str) -> list[Mapping[str, Any]]:
    """The maps of a list below a map."""
    found = content.get(key) if isinstance(content, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def plain_text(content: bytes, path: str) -> str:
    """A file's text without a byte order mark, with plain line ends. Raises UsageError."""
    marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    encoding = marks.get(content[:2], "utf-8-sig")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid YAML: {error}", next=f"correct {path}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_tabs(text: str) -> str:
    text = _BLANK_WITH_TABS.sub("", text)
    text = _TAB_AFTER_VALUE.sub(" ", text)
    return _TAB_BEFORE_VALUE.sub(" ", text)


@functools.cache
def loader() -> Any:
    """PyYAML's, which also takes a lone `=`, as some schemas have it, and `1e+06` for a number.

    So Go writes large numbers, and templates of charts with it.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _WITH_EXPONENT, list("-+.0123456789"))
    Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)
    return Loader


def load_all(text: str) -> list[Any]:
    """The documents of a text. Raises what `unreadable` tells."""
    import yaml

    _refuse_deep(text)
    return list(yaml.load_all(text, Loader=loader()))


def nodes(text: str) -> list[Any]:
    """The documents of a text as PyYAML's nodes, which know their lines; none for what can't be
    read."""
    import yaml

    try:
        _refuse_deep(text)
        return [each for each in yaml.compose_all(text, Loader=loader()) if each is not None]
    except unreadable():
        return []


def _refuse_deep(text: str) -> None:
    """PyYAML's C code calls itself for each level: deep enough, and the process is gone.

    Raises YAMLError.
    """
    import yaml

    # An indentation may hold a map and a list of it; a bracket in a text counts, too.
    indentation = max(each.end() - each.start() for each in _INDENTATION.finditer(text))
    if 2 * indentation + text.count("[") + text.count("{") < _DEEPEST:
        return
    depth = 0
    for event in yaml.parse(text, Loader=loader()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {_DEEPEST} levels deep")


def repeated_key(content: bytes, path: str) -> str | None:
    """A key that stands twice in one map, with its line: the last one counts, but not for all."""
    waiting, seen_nodes = nodes(plain_text(content, path)), set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen_nodes:  # An alias.
            continue
        seen_nodes.add(id(node))
        if node.id == "sequence":
            waiting += node.value
        elif node.id == "mapping":
            seen: set[str] = set()
            for key, value in node.value:
                if key.id == "scalar" and key.value in seen:
                    return f"`{key.value}` in line {key.start_mark.line + 1}"
                seen |= {key.value} if key.id == "scalar" else set()
                waiting.append(value)
    return None


def unreadable() -> tuple[type[Exception], ...]:
    """What a text that is not YAML ends in; some values end PyYAML with errors of Python's own."""
    import yaml

    return (yaml.YAMLError, ValueError, LookupError, OverflowError, RecursionError)


def dump_all(documents: Iterable[Any]) -> str:
    """Documents as one text, their keys in their order; strings stay strings in every parser."""
    import yaml

    def text(dumper: Any, value: str) -> Any:
        style = "'" if _NO_TEXT_ELSEWHERE.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    dumper = type("TextDumper", (yaml.SafeDumper,), {})
    dumper.add_representer(str, text)  # type: ignore[attr-defined]
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False))


def _load(text: str, path: str = "") -> list[Any]:
    try:
        return load_all(text)
    except unreadable() as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        words = ", ".join(lines[:2]) or type(error).__name__
        raise UsageError(f"{path} is not valid YAML: {words}", next=f"correct {path}") from error
