"""The values that an Application passes to a chart, merged into one file. Pure.

The order is helm's: values files, inline values, parameters. Mappings are merged, everything else
is replaced, and null removes a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, maps

_TAKEN = frozenset(
    [
        *("valueFiles", "values", "valuesObject", "parameters", "releaseName"),
        *("ignoreMissingValueFiles", "version", "passCredentials"),
    ]
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


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
    for each in parameters:
        set_value(
            found,
            str(each.get("name")),
            str(each.get("value", "")),
            literal=bool(each.get("forceString")),
        )
    return dump_all([found]).encode()


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
    """Set a value at a dotted path, as helm's --set does, or --set-string if it is literal.

    Raises NotImportable.
    """
    if re.search(r"[\[\]{},]", name):
        raise NotImportable(
            f"the parameter {name} reaches into a list", "write it to a values file instead"
        )
    keys = [each.replace("\\.", ".") for each in re.split(r"(?<!\\)\.", name)]
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            values[key] = {}
        # Copy, so that the parsed content of a file isn't modified.
        values[key] = dict(values[key])
        values = values[key]
    values[keys[-1]] = text if literal else _typed(text)


def _typed(text: str) -> Any:
    """Parse a value as helm's --set does."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text
