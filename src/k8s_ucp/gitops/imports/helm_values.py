"""The values that an Application passes to a chart, merged into one file. Pure.

The order is helm's: values files, inline values, parameters. Mappings are merged, everything else
is replaced, and null removes a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, maps

_TAKEN = frozenset(
    [
        *("valueFiles", "values", "valuesObject", "parameters", "releaseName"),
        *("ignoreMissingValueFiles", "version", "passCredentials", "skipTests"),
    ]
)
_VARIABLE = re.compile(r"\$[\w{*#@!?-]")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_KEY = re.compile(
    r"(?P<key>(?:\\.|[^\\.\[\]{},])+)(?P<places>(?:\[\d{1,4}\])*)(?:\.(?=.)|$)", re.DOTALL
)
"""One key of a path, with the places in lists that follow it."""
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_DEEPEST = 30
"""Helm takes no path with more dots."""


def check_settings(helm: Mapping[str, Any]) -> None:
    """Raise NotImportable for settings that an app in ucp.yaml can't have."""
    others = sorted(str(key) for key, value in helm.items() if value and key not in _TAKEN)
    if others:
        raise NotImportable(
            f"the Application sets helm.{', helm.'.join(others)}",
            "add the app with `ucp app add`, and set it in its .argocd-source.yaml",
        )


def merged(files: Iterable[tuple[str, bytes]], helm: Mapping[str, Any]) -> bytes:
    """Merge values files (path, content) and the Application's own values into one file.

    Raises NotImportable.
    """
    pieces = list(files)
    inline = _inline(helm)
    parameters = maps(helm, "parameters")
    if len(pieces) == 1 and not inline and not parameters:
        return pieces[0][1]
    found: dict[str, Any] = {}
    for path, content in pieces:
        found = merge(found, _values(content, path))
    found = merge(found, inline)
    for parameter in parameters:
        # Go reads keys in any case, and Argo CD Image Updater writes this one in lower case.
        literal = parameter.get("forceString") or parameter.get("forcestring")
        name, value = str(parameter.get("name")), _without_variables(parameter)
        set_value(found, name, value, literal=bool(literal))
    return dump_all([found]).encode()


def _without_variables(parameter: Mapping[str, Any]) -> str:
    """A parameter's value; `$$` stands for a dollar sign. Raises NotImportable."""
    value = str(parameter.get("value", ""))
    if _VARIABLE.search(value.replace("$$", "")):
        raise NotImportable(
            f"its parameter {parameter.get('name')} has a variable that Argo CD fills: {value}",
            "add the app with `ucp app add`, and set it in its .argocd-source.yaml",
        )
    return value.replace("$$", "$")


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values as helm does."""
    found = dict(under)
    for key, value in over.items():
        existing = found.get(key)
        if isinstance(existing, dict) and isinstance(value, dict):
            value = merge(existing, value)
        found[key] = value
    return found


def _inline(helm: Mapping[str, Any]) -> Mapping[str, Any]:
    values = helm.get("valuesObject")
    if isinstance(values, dict):
        return values
    text = helm.get("values")
    return _values(text.encode(), "helm.values") if isinstance(text, str) and text.strip() else {}


def _values(content: bytes, path: str) -> Mapping[str, Any]:
    try:
        found = documents(content, path)
    except UsageError as error:
        raise NotImportable(error.message, f"correct {path}") from error
    if not found or found[0] is None:
        return {}
    if not isinstance(found[0], dict):
        raise NotImportable(f"{path} holds no values", f"correct {path}")
    return found[0]


def set_value(values: dict[str, Any], name: str, text: str, *, literal: bool = False) -> None:
    """Set a value at a path such as `hosts[0].name`, as helm's --set, or --set-string if literal.

    Raises NotImportable.
    """
    keys: list[str | int] = []
    at = 0
    while at < len(name) or not keys:
        match = _KEY.match(name, at)
        if match is None or len(keys) > 2 * _DEEPEST:
            raise NotImportable(
                f"{name[:80]} is not a path that helm's --set takes",
                "write it to a values file instead",
            )
        keys += [_unescaped(match["key"]), *map(int, re.findall(r"\d+", match["places"]))]
        at = match.end()
    # Copies, so that the parsed content of a file isn't modified.
    values.update(_with(values, keys, _typed(text, literal)))


def _with(existing: Any, keys: Sequence[str | int], value: Any) -> Any:
    """A copy of a mapping or list, with the value at the keys."""
    if not keys:
        return value
    first, *rest = keys
    if isinstance(first, str):
        own = existing if isinstance(existing, dict) else {}
        return {**own, first: _with(own.get(first), rest, value)}
    listed = [*existing] if isinstance(existing, list) else []
    listed += [None] * (first + 1 - len(listed))
    listed[first] = _with(listed[first], rest, value)
    return listed


def _typed(text: str, literal: bool) -> Any:
    """Parse a value as helm's --set does; `{a,b}` is a list."""
    if text.startswith("{") and text.endswith("}"):
        return [_typed_one(each, literal) for each in re.split(r"(?<!\\),", text[1:-1])]
    return _typed_one(text, literal)


def _typed_one(text: str, literal: bool) -> Any:
    text = _unescaped(text)
    if literal:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
