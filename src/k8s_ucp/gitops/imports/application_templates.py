"""The template of an ApplicationSet, filled with the parameters of one element. Pure.

Both notations of Argo CD: `{{path.basename}}`, and Go templates (`goTemplate: true`) as far as they
name parameters, look into lists or use one of a few functions. All else can't be filled here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from k8s_ucp.gitops.imports.findings import NotImportable

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_FIELD = re.compile(r"\.[\w.]*")
_INDEX = re.compile(r"index\s+(\.[\w.]+)\s+(?:(\d+)|\"([^\"]*)\")")
_DEFAULT = re.compile(r"default\s+\"([^\"]*)\"\s+(\.[\w.]+)")
_CALL = re.compile(r"(\w+)\s+(\.[\w.]+)")
_ADVICE = "add its apps by `ucp app add`, or import the manifests that Argo CD made of it"


def fill(value: Any, parameters: Mapping[str, Any], *, go: bool) -> Any:
    """The value with every action in its texts filled. Raises NotImportable."""
    if isinstance(value, str):
        return _ACTION.sub(lambda match: _text(match[1], parameters, go), value)
    if isinstance(value, dict):
        return {
            fill(key, parameters, go=go): fill(item, parameters, go=go)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [fill(item, parameters, go=go) for item in value]
    return value


def normalized(text: str) -> str:
    """As Argo CD makes a name of a path's part."""
    return re.sub(r"[^-a-z0-9.]", "-", text.lower()).strip("-.")


def _text(action: str, parameters: Mapping[str, Any], go: bool) -> str:
    found = _go(action, parameters) if go else parameters.get(action)
    if found is None:
        raise NotImportable(
            f"the template names {{{{{action}}}}}, which is not known here", _ADVICE
        )
    if isinstance(found, bool):
        return str(found).lower()
    return str(found)


_FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "normalize": normalized,
    "trim": str.strip,
    "toString": str,
    "quote": lambda text: f'"{text}"',
}


def _go(action: str, parameters: Mapping[str, Any]) -> Any:
    first, *others = (each.strip() for each in action.split("|"))
    found: Any = None
    if _FIELD.fullmatch(first):
        found = _field(first, parameters)
    elif match := _INDEX.fullmatch(first):
        holder = _field(match[1], parameters)
        if isinstance(holder, list) and match[2]:
            found = holder[int(match[2])] if int(match[2]) < len(holder) else None
        elif isinstance(holder, dict):
            found = holder.get(match[3])
    elif match := _DEFAULT.fullmatch(first):
        found = _field(match[2], parameters) or match[1]
    elif (match := _CALL.fullmatch(first)) and match[1] in _FUNCTIONS:
        found = _field(match[2], parameters)
        found = None if found is None else _FUNCTIONS[match[1]](str(found))
    for name in others:
        if name not in _FUNCTIONS:
            return None
        found = None if found is None else _FUNCTIONS[name](str(found))
    return found


def _field(path: str, parameters: Mapping[str, Any]) -> Any:
    found: Any = parameters
    for key in path.strip(".").split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found
