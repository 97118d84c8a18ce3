"""Reads the YAML of a topology file. Any text gives a result, or BadYaml with the line."""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, SequenceNode
from ruamel.yaml.scanner import Scanner, ScannerError

from k8s_ucp import yaml_io

__all__ = ["BadYaml", "MappingNode", "SequenceNode", "compose", "read"]

DEEPEST = 50
"""Levels of nested lists and maps; a topology needs seven."""


_AT_END = re.compile(r"end of stream|<stream end>")
_HINTS = {
    r"character '\t'": "indent with spaces, not with tabs",
    "but found '<scalar>'": "check the indentation, and that each quote above is closed",
    "expected <block end>": "check the indentation of this line and of those above it",
    "mapping values are not allowed": "check the indentation; quote a value that contains ': '",
    "end of stream": "a quote that begins here is not closed",
    "<stream end>": "a bracket that begins here is not closed",
}
"""What to correct, by a part of the parser's message."""
_TWICE = re.compile('(found duplicate key ".*?") with value .*')
"""The values are left out: one may be long, and a mapping is shown as empty."""
_CONFLICT = re.compile(r"^<<<<<<< ", re.MULTILINE)


class BadYaml(ValueError):
    """Text that is not valid YAML. line: from 1, if known."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class _Scanner(Scanner):
    def fetch_more_tokens(self) -> Any:
        try:
            return super().fetch_more_tokens()
        except (OverflowError, ValueError) as error:  # "\\U7fffffff"
            raise ScannerError(None, None, str(error), self.reader.get_mark()) from error


@contextlib.contextmanager
def _at(node: Any) -> Iterator[None]:
    """Convert errors of a value to YAML errors with its position."""
    try:
        yield
    except YAMLError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        kind = str(node.tag).rpartition(":")[2]
        what = f"{node.value[:40]!r} is" if isinstance(node.value, str) else "this is"
        raise ConstructorError(
            None, None, f"{what} not of the type {kind}", node.start_mark
        ) from error


class _Constructor(SafeConstructor):
    def construct_object(self, node: Any, deep: bool = False) -> Any:
        with _at(node):
            return super().construct_object(node, deep)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        # Called after construct_object has returned, so its errors need the position, too.
        with _at(node):
            return super().construct_mapping(node, deep)


def read(text: str) -> Any:
    """The content of a text, as a copy that the caller may change. Raises BadYaml."""
    return copy.deepcopy(_read(text))


# Cached: an edit reads the same text a dozen times, which takes milliseconds each.
@functools.lru_cache(maxsize=4)
def _read(text: str) -> Any:
    try:
        if yaml_io.has_aliases(text):
            yaml_io.refuse_multiplied(_yaml().parse(text))
        return _yaml().load(text)
    except (YAMLError, ValueError) as error:
        _refuse(error, text)


@functools.lru_cache(maxsize=4)
def compose(text: str) -> Any:
    """The tree of nodes with their lines; shared, so don't change it. Raises BadYaml."""
    try:
        return _yaml().compose(text)
    except (YAMLError, ValueError) as error:
        _refuse(error, text)


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    yaml.Constructor = _Constructor
    yaml.max_depth = DEEPEST
    return yaml


def _refuse(error: Exception, text: str) -> NoReturn:
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise BadYaml("a conflict of git begins here: keep one of its two sides", line)
    if isinstance(error, MarkedYAMLError):
        reason = _TWICE.sub(r"\1", (error.problem or "no YAML").splitlines()[0])
        # What is not closed is corrected where it begins; the parser finds it at the end.
        begins = error.context_mark if _AT_END.search(reason) else None
        mark = begins or error.problem_mark
        line = mark.line + 1 if mark else 1
        if reason == "but found another document":
            reason = "the file has several documents: keep one, without a second line '---'"
        if reason.startswith("maximum depth"):
            reason = f"nested more than {DEEPEST} levels deep"
        if hint := next((hint for found, hint in _HINTS.items() if found in reason), None):
            reason = f"{reason} ({hint})"
        raise BadYaml(reason, line) from error
    if isinstance(error, yaml_io.Multiplied):
        raise BadYaml(error.reason, error.line) from error
    raise BadYaml(str(error).splitlines()[0], None) from error
