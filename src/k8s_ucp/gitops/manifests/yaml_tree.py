"""Parses YAML to a tree that records the position of each value.

Editing a user's file means changing a few characters; dumping it would reformat the rest. So the
parser's events, which have positions, are kept as a small tree, and nothing is resolved: an alias
stays an alias, `1.10` stays these four characters.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from k8s_ucp.errors import UcpError

LARGEST = 1_000_000
"""Characters; a kustomization has a few hundred."""

DEEPEST = 60
"""Levels of nesting."""


class NotEditable(UcpError):
    """A file in the repository doesn't have the form that this edit requires."""


@dataclass
class YamlNode:
    """A value and its position: text[start:end], including anchor and tag."""

    kind: Literal["scalar", "map", "list", "alias"]
    start: int
    end: int
    value: str = ""
    """Of a scalar, its text without quotes; of an alias, the anchor's name."""
    style: str = ""
    """Quote or block character of a scalar; "" is plain."""
    anchor: str = ""
    tag: str = ""
    flow: bool = False
    pairs: list[tuple[YamlNode, YamlNode]] = field(default_factory=list)
    items: list[YamlNode] = field(default_factory=list)
    target: YamlNode | None = None
    """The node that an alias refers to."""

    def resolved(self) -> YamlNode:
        """The node itself, or the target of an alias."""
        return self.target or self

    def own(self, key: str) -> tuple[YamlNode, YamlNode] | None:
        """The pair with that key in this mapping itself, not in merged ones."""
        for pair in self.pairs:
            if pair[0].kind == "scalar" and pair[0].value == key:
                return pair
        return None

    def text(self, key: str) -> str:
        """The scalar at a key; "" if there is none."""
        pair = self.own(key)
        return pair[1].resolved().value if pair else ""

    def walk(self) -> Iterator[YamlNode]:
        """This node and all nested nodes; aliases are not followed."""
        yield self
        for key, value in self.pairs:
            yield from key.walk()
            yield from value.walk()
        for item in self.items:
            yield from item.walk()

    def own_shape(self) -> tuple[str, ...]:
        """The content without positions, and without keys, values and items."""
        style = self.style if self.kind == "scalar" else ""
        return self.kind, self.value, self.anchor, self.tag, style

    def shape(self, mapping: YamlNode, without: Container[str]) -> object:
        """The content without positions, and without some keys of `mapping`.

        Equal shapes mean equal documents.
        """
        return (
            *self.own_shape(),
            tuple(
                (key.shape(mapping, without), value.shape(mapping, without))
                for key, value in self.pairs
                if self is not mapping or key.value not in without
            ),
            tuple(item.shape(mapping, without) for item in self.items),
        )


def read_tree(text: str, where: str) -> YamlNode:
    """The tree of a YAML file with exactly one document. Raises NotEditable."""
    roots = read_documents(text, where)
    if len(roots) != 1:
        raise NotEditable(
            f"{where} contains {len(roots)} YAML documents; expected one",
            next="move each document to its own file",
        )
    return roots[0]


@lru_cache(maxsize=64)
def read_documents(text: str, where: str) -> tuple[YamlNode, ...]:
    """The trees of a YAML file's documents.

    where: the file's path, for messages. The result is cached, so the trees must not be modified.
    Raises NotEditable.
    """
    from k8s_ucp import yaml_io

    if len(text) > LARGEST:
        raise NotEditable(f"{where} has more than {LARGEST} characters")
    try:
        events = list(yaml_io.events(text))
    except yaml_io.YAMLError as error:
        raise NotEditable(f"{where} is not valid YAML: {_plain(error)}") from error
    except ValueError as error:
        # Characters such as surrogates, which the reader rejects before it has a position.
        raise NotEditable(f"{where} is not valid YAML: {error}") from error
    return _Builder(events, where).documents()


class _Builder:
    """Builds nodes from events."""

    def __init__(self, events: list[object], where: str) -> None:
        self._events = iter(events)
        self._where = where
        self._anchors: dict[str, YamlNode] = {}

    def documents(self) -> tuple[YamlNode, ...]:
        roots = []
        for event in self._events:
            if type(event).__name__ == "DocumentStartEvent":
                # An anchor is only valid in its document.
                self._anchors = {}
                roots.append(self._node(next(self._events), 0))
        return tuple(roots)

    def _node(self, event: object, depth: int) -> YamlNode:
        if depth > DEEPEST:
            raise NotEditable(f"{self._where} is nested more than {DEEPEST} levels deep")
        name = type(event).__name__
        start = event.start_mark.index  # type: ignore[attr-defined]
        end = event.end_mark.index  # type: ignore[attr-defined]
        if name == "AliasEvent":
            return self._alias(str(event.anchor), start, end)  # type: ignore[attr-defined]
        anchor = str(getattr(event, "anchor", None) or "")
        tag = str(getattr(event, "tag", None) or "")
        if name == "ScalarEvent":
            node = YamlNode("scalar", start, end, anchor=anchor, tag=tag)
            node.value = str(event.value)  # type: ignore[attr-defined]
            node.style = event.style or ""  # type: ignore[attr-defined]
            self._remember(node)
            return node
        node = YamlNode(
            "map" if name == "MappingStartEvent" else "list", start, end, anchor=anchor, tag=tag
        )
        node.flow = bool(event.flow_style)  # type: ignore[attr-defined]
        self._remember(node)
        self._fill(node, depth)
        return node

    def _alias(self, anchor: str, start: int, end: int) -> YamlNode:
        target = self._anchors.get(anchor)
        if target is None:
            raise NotEditable(f"{self._where} uses the YAML anchor {anchor} before its definition")
        return YamlNode("alias", start, end, value=anchor, target=target)

    def _remember(self, node: YamlNode) -> None:
        if node.anchor:
            self._anchors[node.anchor] = node

    def _fill(self, node: YamlNode, depth: int) -> None:
        inside: list[YamlNode] = []
        for event in self._events:
            if type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
                node.end = event.end_mark.index  # type: ignore[attr-defined]
                break
            inside.append(self._node(event, depth + 1))
        if node.kind == "list":
            node.items = inside
        else:
            node.pairs = list(zip(inside[::2], inside[1::2], strict=True))


def _plain(error: Exception) -> str:
    """The parser's message on one line, without the excerpt of the file."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)
