"""Reads the YAML of a topology file. Any text gives a result, or BadYaml with the line."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, SequenceNode
from ruamel.yaml.scanner import Scanner, ScannerError

__all__ = ["BadYaml", "MappingNode", "SequenceNode", "compose", "read"]

DEEPEST = 50
"""Levels of nested lists and maps; a topology needs seven."""


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
        return _yaml().load(text)
    except (YAMLError, ValueError) as error:
        _refuse(error)


@functools.lru_cache(maxsize=4)
def compose(text: str) -> Any:
    """The tree of nodes with their lines; shared, so don't change it. Raises BadYaml."""
    try:
        return _yaml().compose(text)
    except (YAMLError, ValueError) as error:
        _refuse(error)


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    yaml.Constructor = _Constructor
    yaml.max_depth = DEEPEST
    return yaml


def _refuse(error: Exception) -> NoReturn:
    if isinstance(error, MarkedYAMLError):
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = (error.problem or "no YAML").splitlines()[0]
        if reason == "but found another document":
            reason = "the file has several documents: keep one, without a second line '---'"
        if reason.startswith("maximum depth"):
            reason = f"nested more than {DEEPEST} levels deep"
        raise BadYaml(reason, line) from error
    raise BadYaml(str(error).splitlines()[0], None) from error
