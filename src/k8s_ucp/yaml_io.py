"""Reads YAML, and writes it with comments preserved, by ruamel.

Besides, only the stricter reader of ucp.yaml uses it, topology/yaml_reader.py.

The pure Python parser is used everywhere: it alone reports positions of values, and implements YAML
1.2, in which `no` is a string. It is slow (a tenth of a millisecond per line), so
gitops/manifests/yaml_text.py reads kustomize's output.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

__all__ = [
    "Multiplied",
    "YAMLError",
    "dump",
    "editor",
    "events",
    "has_aliases",
    "load",
    "load_all",
    "refuse_multiplied",
    "written",
]

DEEPEST = 200
"""Limit of nested mappings and lists, higher than any Kubernetes object needs.

What walks through a value recurses for each level; Python allows 1000 calls.
"""
MOST_REPEATED = 100_000
"""Values that the aliases of a document may stand for; 100 characters count as another value."""
_ANCHOR = re.compile(r"(?:^|[\s\[{,:])&[^\s&]")
_ALIAS = re.compile(r"(?:^|[\s\[{,:])\*[^\s*]")


def load(text: str) -> Any:
    """The only document of a text; None if the text is empty. Raises YAMLError, ValueError."""
    _refuse_aliases(text)
    try:
        return _reader().load(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def load_all(text: str) -> Iterator[Any]:
    """The documents of a text. Raises YAMLError, ValueError."""
    _refuse_aliases(text)
    try:
        yield from _reader().load_all(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


class _Constructor(SafeConstructor):
    def construct_yaml_int(self, node: Any) -> int:
        found: int = super().construct_yaml_int(node)
        str(found)  # Raises ValueError for a number that Python never prints: 0x… is any length.
        return found


_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)


def _reader() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    # An anchor's name may be used again; otherwise ruamel prints a warning.
    yaml.composer.warn_double_anchors = False
    return yaml


_TOO_DEEP = "it is nested too deeply"


def _refuse_aliases(text: str) -> None:
    if has_aliases(text):
        refuse_multiplied(events(text))


class Multiplied(ValueError):
    """The aliases of a text stand for too many values. line: of one of them, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"{reason} (line {line})")
        self.reason = reason
        self.line = line


def has_aliases(text: str) -> bool:
    """Whether a text may have aliases; some texts without any look like it."""
    return bool(_ALIAS.search(text) and _ANCHOR.search(text))


def refuse_multiplied(events: Iterable[Any]) -> None:
    """Raise Multiplied if aliases repeat too many values, nest them, or a value contains itself.

    Ten lines of aliases to aliases can stand for billions of values, which whoever copies them
    (kustomize, a merge key `<<`) needs memory for. events: a parser's, of PyYAML or ruamel.
    """
    sizes: dict[str, int | None] = {}
    """Number of values that each anchor stands for; None until its value ends."""
    levels: dict[str, int] = {}
    """Levels of collections in each anchor's value."""
    around: list[tuple[str | None, int, int]] = []
    """Anchors of the collections around an event, their numbers of values, and their levels."""
    repeated = size = deepest = 0
    for event in events:
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            sizes.clear()
            repeated = 0
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            around.append((event.anchor, size, deepest))
            size, deepest = 1, 0
            if event.anchor:
                sizes[event.anchor] = None
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before, other = around.pop()
            deepest += 1
            if anchor:
                sizes[anchor], levels[anchor] = size, deepest
            size += before
            deepest = max(deepest, other)
        elif kind == "ScalarEvent":
            own = 1 + len(event.value) // 100
            if event.anchor:
                sizes[event.anchor], levels[event.anchor] = own, 0
            size += own
        elif kind == "AliasEvent":
            target = sizes.get(event.anchor, 0)
            line = event.start_mark.line + 1
            if target is None:
                raise Multiplied(f"the alias *{event.anchor} refers to a value around it", line)
            size += target
            repeated += target
            if repeated > MOST_REPEATED:
                raise Multiplied(f"its aliases repeat more than {MOST_REPEATED} values", line)
            deepest = max(deepest, levels.get(event.anchor, 0))
            if len(around) + levels.get(event.anchor, 0) > DEEPEST:
                raise Multiplied(f"its aliases nest more than {DEEPEST} levels", line)


def events(text: str) -> Iterator[Any]:
    """The parser's events, with positions. Raises YAMLError, ValueError."""
    yield from YAML(typ="safe", pure=True).parse(text)


def dump(data: Any, *, width: int | None = None) -> str:
    """Serialize data as one document in block style; keeps the order of keys.

    width: maximum line length where text can be wrapped. Default: ruamel's.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.width = width
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    return written(yaml, data)


def editor(*, width: int, indent_lists: bool = False) -> YAML:
    """For texts that users wrote: keeps comments, order and quotes. width: maximum line length."""
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = width
    if indent_lists:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def written(yaml: YAML, data: Any) -> str:
    """Serialize data with `yaml`."""
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()
