"""Describes problems of a topology file: line, key, how to fix it.

Pure functions: text and pydantic's errors in, sentences out.
"""

from __future__ import annotations

import difflib
import itertools
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.providers import PROVIDERS
from k8s_ucp.redaction import HIDDEN

if typing.TYPE_CHECKING:
    from pydantic import BaseModel

Loc = tuple[str | int, ...]

_LOGINS = (("spec", "git", "auth"), ("spec", "git", "readAuth"))

SHOWN = 10
"""Most problems shown at once."""


@dataclass(frozen=True)
class Problem:
    """A problem. at: path of keys and indexes; on_key: the key itself is wrong."""

    at: Loc
    message: str
    on_key: bool = False


def from_pydantic(errors: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> list[Problem]:
    """Convert pydantic's errors. model: the class of the whole file."""
    return [_translate(each, model) for each in errors]


def sentences(problems: Iterable[Problem], text: str, name: str | None) -> list[str]:
    """`<name>:<line>: <message>` for each problem, in the order of the file.

    name: None leaves out the file name and line.
    """
    from k8s_ucp.topology.yaml_reader import compose

    root = compose(text)
    lines = sorted({(_line(root, each), _printable(each.message)) for each in problems})
    shown = [f"{name}:{line}: {message}" if name else message for line, message in lines[:SHOWN]]
    if len(lines) > SHOWN:
        shown.append(f"... and {len(lines) - SHOWN} more")
    return shown


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_lower = {each.lower().replace("_", ""): each for each in known}
    found = difflib.get_close_matches(word.lower().replace("_", ""), by_lower, 1, 0.6)
    return by_lower[found[0]] if found else None


def hint(word: str, known: Iterable[str]) -> str:
    """A question about the nearest known word; empty if none is near."""
    near = nearest(word, known)
    return f"did you mean '{near}'? " if near else ""


def some(names: Iterable[str]) -> str:
    """The first names, for a message; "none" if there are none."""
    found = list(itertools.islice(names, SHOWN + 1))
    return ", ".join([*found[:SHOWN], *(["..."] if len(found) > SHOWN else [])]) or "none"


def shown(loc: Loc) -> str:
    """A path as shown to people: spec.environments[0].name."""
    text = ""
    for each in loc:
        text += f"[{each}]" if isinstance(each, int) else f".{each}"
    return text.removeprefix(".") or "the file"


def _translate(error: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    loc: Loc = tuple(error["loc"])
    kind, value, context = error["type"], _repeatable(loc, error.get("input")), error.get("ctx", {})
    if kind == "extra_forbidden":
        return Problem(loc, _unknown_key(loc, model), on_key=True)
    if kind == "missing":
        return Problem(loc[:-1], f"{shown(loc[:-1])} requires the key '{loc[-1]}'")
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return Problem(loc, f"{shown(loc)}: {unknown_value(value, allowed)}")
    if kind == "string_pattern_mismatch":
        return Problem(loc, f"{shown(loc)}: '{value}' is not {_MEANING[context['pattern']]}")
    if kind == "string_type" and isinstance(value, int | float | bool):
        # Not with the value: 1.10 was read as 1.1.
        return Problem(loc, f"{shown(loc)} must be a string: put the value in quotes")
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return Problem(loc, f"{shown(loc)} {_no_mapping(value, _keys(model, loc))}")
    if kind in ("tuple_type", "list_type"):
        return Problem(loc, f"{shown(loc)} must be a list (lines that begin with '- ')")
    message = str(error["msg"]).removeprefix("Value error, ")
    if kind == "value_error":
        return Problem(loc, f"{shown(loc)}: {message}")
    # Pydantic's sentence is about an "input", which people don't have.
    expected = next((text for start, text in _EXPECTED.items() if kind.startswith(start)), "")
    message = f"must be {expected.format(**context)}" if expected else message
    return Problem(loc, f"{shown(loc)}: {_yaml(value)}: {message}")


_EXPECTED = {
    "int_": "a whole number",
    "float_": "a number",
    "bool_": "true or false",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_type": "a string",
    "string_too_long": "at most {max_length} characters long",
}
"""What a value must be, by the beginning of pydantic's type of the error."""


_MEANING: dict[str, str] = {}
"""Descriptions of the topology's patterns, by pattern."""


def means(pattern: str, words: str) -> str:
    """Register the description of a pattern; returns the pattern."""
    _MEANING[pattern] = words
    return pattern


def _no_mapping(value: Any, known: Sequence[str]) -> str:
    """The message for a value where a mapping belongs. known: the mapping's keys."""
    first, keys = next(iter(known), ""), ", ".join(known)
    word = value if isinstance(value, str) else ""
    is_name = first == "name" and re.fullmatch(r"[a-z0-9-]+", word)
    if is_name or (first == "provider" and word in PROVIDERS):
        return f"must be a mapping: did you mean '{{{first}: {value}}}'? allowed: {keys}"
    return f"must be a mapping with the keys {keys}"


def _unknown_key(loc: Loc, model: type[BaseModel]) -> str:
    key, parent = str(loc[-1]), loc[:-1]
    where = f" in {shown(parent)}" if parent else ""
    known = _keys(model, parent)
    inside = next((each for each in known if key in _keys(model, (*parent, each))), None)
    nested = f"did you mean '{inside}: {{{key}: ...}}'? " if inside else ""
    near = hint(key, known) or nested
    return f"unknown key '{key}'{where}: {near}allowed: {', '.join(known)}"


def unknown_value(value: Any, allowed: Sequence[str]) -> str:
    """The message for a value that is not allowed."""
    value = _repeatable((), value)
    near = hint(value, allowed) if isinstance(value, str) and len(allowed) > 1 else ""
    return f"unknown value {_yaml(value)}: {near}allowed: {', '.join(allowed)}"


def _keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys allowed at a path, as written in the file."""
    current: Any = model
    for each in loc:
        if isinstance(each, str):
            fields = {field.alias or name: field for name, field in current.model_fields.items()}
            if each not in fields:
                return []
            current = _model_in(fields[each].annotation)
    fields = current.model_fields if current else {}
    return [field.alias or name for name, field in fields.items()]


def _model_in(annotation: Any) -> Any:
    """The model class inside tuple[X, ...] and X | None."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return annotation
    for each in typing.get_args(annotation):
        found = _model_in(each)
        if found is not None:
            return found
    return None


def _printable(text: str) -> str:
    """The text on one line, with control characters escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _repeatable(loc: Loc, value: Any) -> Any:
    """A wrong value, redacted for a message, since many people can read CI logs.

    Where the name of a credential is expected, people paste the credential itself.
    """
    if not isinstance(value, str):
        return value
    if loc[:2] == ("spec", "credentials") or loc in _LOGINS:
        return HIDDEN
    return re.sub(r"\S+", lambda word: _without_login(word[0]), value)


def _without_login(word: str) -> str:
    """The word without what is between its first `//` and its last `@`.

    A regular expression would take minutes for a word of many slashes.
    """
    start, end = word.find("//"), word.rfind("@")
    return f"{word[:start]}//...@{word[end + 1 :]}" if 0 <= start < end else word


def _yaml(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int) and value.bit_length() > 200:
        # Python refuses to convert thousands of digits to a string.
        return "this long number"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _line(root: Any, problem: Problem) -> int:
    """Line (from 1) of the key or value at a path, or of the nearest node around it.

    root: the node of the whole file.
    """
    from k8s_ucp.topology.yaml_reader import MappingNode, SequenceNode

    node = root
    line = node.start_mark.line if node is not None else 0
    for depth, each in enumerate(problem.at):
        last = depth == len(problem.at) - 1
        if isinstance(node, MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == str(each)), None)
            if pair is None:
                break
            line = pair[0].start_mark.line
            node = pair[1]
            if last and not problem.on_key and not node.value:
                break
        elif isinstance(node, SequenceNode) and isinstance(each, int) and each < len(node.value):
            node = node.value[each]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1
