"""Fills an ApplicationSet's template with the parameters of one element. Pure.

Supports both notations of Argo CD: `{{path.basename}}`, and Go templates (`goTemplate: true`) if
they are pipelines of parameters and common functions. Other ones, with conditions and loops, are
for helm (`go_templates.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.templates import actions_in, with_actions

_CONTROL = re.compile(r"\{\{-?\s*(?:if|with|range)\b")
_FIELD = re.compile(r"\.[\w.-]*")
_WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|`[^`]*`|[()|]|[^\s()|"`]+)')
_LONGEST_ACTION = 2_000
_LONGEST_VALUE = 100_000
"""Characters. Others write the templates, and `replace` can multiply a text by its length."""
_ADVICE = (
    "add its apps with `ucp app add`, or import the Applications that Argo CD generated from it"
)


def fill(value: Any, parameters: Mapping[str, Any], *, go: bool) -> Any:
    """The value with all template actions in its strings filled. Raises NotImportable."""

    def filled(action: str) -> str:
        return _text(_trimmed(action), parameters, go)

    return _mapped(value, lambda text: with_actions(text, filled))


def texts_in(value: Any) -> Iterator[str]:
    """All strings of a value with template actions, also keys."""
    if isinstance(value, str):
        if "{{" in value:
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def with_texts(value: Any, texts: Mapping[str, str]) -> Any:
    """The value with its strings replaced by those that `texts` has for them."""
    return _mapped(value, lambda text: texts.get(text, text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The value with `change` applied to all of its strings, also keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value


def refuse_unknown(texts: Sequence[str], parameters: Mapping[str, Any]) -> None:
    """Raise NotImportable for an action that is only a parameter, which is not known here.

    helm would fill it with nothing. Where there are conditions, they may ask for it first.
    """
    plain = (text for text in texts if not _CONTROL.search(text))
    for action in (_trimmed(each) for text in plain for each in actions_in(text)):
        if _FIELD.fullmatch(action) and action != ".":
            _text(action, parameters, go=True)


def _trimmed(action: str) -> str:
    """Without spaces, and the dashes by which Go trims what is around an action."""
    return action.removeprefix("-").removesuffix("-").strip()


def normalized(text: str) -> str:
    """A valid name from a path segment, as in Argo CD."""
    return re.sub(r"[^-a-z0-9.]", "-", text.lower()).strip("-.")


def _text(action: str, parameters: Mapping[str, Any], go: bool) -> str:
    found = _go(action, parameters) if go else parameters.get(action)
    if found is None or isinstance(found, (dict, list)):
        raise NotImportable(
            f"the template names {{{{{action}}}}}, which is not known here", _ADVICE
        )
    if isinstance(found, bool):
        return str(found).lower()
    return str(found)


def _printf(text: str, *values: Any) -> str:
    left = iter(values)
    return re.sub("%[svdq]", lambda _: str(next(left, "")), text)


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, list):
            value = value[key] if isinstance(key, int) and 0 <= key < len(value) else None
        else:
            value = value.get(str(key)) if isinstance(value, dict) else None
    return value


def _dig(keys: Sequence[str], usual: Any, value: Any) -> Any:
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return usual
        value = value[key]
    return value


def _replace(old: str, new: str, text: Any) -> str | None:
    grown = str(text).count(old) * len(new)
    return str(text).replace(old, new) if grown <= _LONGEST_VALUE else None


def _join(by: str, texts: Sequence[Any]) -> str | None:
    return by.join(map(str, texts)) if len(by) * len(texts) <= _LONGEST_VALUE else None


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lower": lambda text: str(text).lower(),
    "upper": lambda text: str(text).upper(),
    "normalize": lambda text: normalized(str(text)),
    "trim": lambda text: str(text).strip(),
    "toString": str,
    "quote": lambda text: f'"{text}"',
    "replace": _replace,
    "trimPrefix": lambda start, text: str(text).removeprefix(start),
    "trimSuffix": lambda end, text: str(text).removesuffix(end),
    "splitList": lambda by, text: str(text).split(by),
    "join": _join,
    "first": lambda texts: _index(texts, 0),
    "last": lambda texts: texts[-1] if texts else None,
    "toJson": json.dumps,
    "printf": _printf,
    "index": _index,
    "ternary": lambda yes, no, which: yes if which else no,
    "eq": lambda one, other: one == other,
    "dig": lambda *words: _dig(words[:-2], words[-2], words[-1]),
}


def _go(action: str, parameters: Mapping[str, Any]) -> Any:
    """Evaluate an action of a Go template; None if it isn't supported."""
    if len(action) > _LONGEST_ACTION:
        return None
    words: list[str] = []
    at = 0
    while action[at:].strip():
        match = _WORD.match(action, at)
        if match is None:
            return None
        words.append(match[1])
        at = match.end()
    try:
        found, left = _pipeline(words, parameters)
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError):
        return None
    return None if left else found


def _pipeline(words: Sequence[str], parameters: Mapping[str, Any]) -> tuple[Any, Sequence[str]]:
    """(value, remaining words) of a pipeline up to a closing parenthesis.

    The result of a function with an unknown argument is unknown.
    """
    value: Any = None
    first = True
    while words and words[0] != ")":
        arguments: list[Any] = []
        name = ""
        while words and words[0] not in ("|", ")"):
            word, words = words[0], words[1:]
            if word == "(":
                inner, words = _pipeline(words, parameters)
                arguments.append(inner)
                words = words[1:]
            elif not arguments and not name and re.fullmatch("[a-z][A-Za-z]*", word):
                name = word
            else:
                arguments.append(_operand(word, parameters))
        value = _called(name, arguments if first else [*arguments, value])
        first = False
        if words and words[0] == "|":
            words = words[1:]
    return value, words


def _called(name: str, arguments: Sequence[Any]) -> Any:
    if name == "default":
        return arguments[1] or arguments[0]
    if not name:
        return arguments[0] if len(arguments) == 1 else None
    if name in ("true", "false"):
        return name == "true"
    if name not in _FUNCTIONS or any(each is None for each in arguments):
        return None
    value = _FUNCTIONS[name](*arguments)
    return None if isinstance(value, str) and len(value) > _LONGEST_VALUE else value


def _operand(word: str, parameters: Mapping[str, Any]) -> Any:
    if word.startswith('"'):
        return json.loads(word)
    if word.startswith("`"):
        return word[1:-1]
    if _FIELD.fullmatch(word):
        return _field(word, parameters)
    return int(word)


def _field(path: str, parameters: Mapping[str, Any]) -> Any:
    found: Any = parameters
    for key in filter(None, path.split(".")):
        found = found.get(key) if isinstance(found, dict) else None
    return found
