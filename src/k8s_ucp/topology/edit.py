"""Changing the user's ucp.yaml: an item comes or goes, every other line stays as it was."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.topology.file import Topology, parse


def with_item(text: str, key: str, item: Mapping[str, Any], path: Path) -> tuple[str, Topology]:
    """Add an item to the list `spec.<key>`: (text, what it now says).

    path: of the file, for messages. Raises UsageError where one of that name is there, or where
    the result is no topology.
    """
    yaml, content = _read(text)
    items = content["spec"].setdefault(key, [])
    if any(each.get("name") == item["name"] for each in items):
        raise UsageError(
            f"'{item['name']}' is there already in {key} of {path.name}",
            next=f"choose another name, or edit {path}",
        )
    if not items:
        content["spec"][key] = items = _plain_list(yaml)
    items.append(dict(item))
    return _written(yaml, content, path)


def without_item(text: str, key: str, name: str, path: Path) -> tuple[str, Topology]:
    """Take an item out of the list `spec.<key>`. Raises UsageError where there is none."""
    yaml, content = _read(text)
    items = content["spec"].get(key) or []
    names = [each.get("name") for each in items]
    if name not in names:
        known = f"; there are: {', '.join(map(str, names))}" if names else ""
        raise UsageError(f"there is no '{name}' in {key} of {path.name}{known}")
    del items[names.index(name)]
    if not items:
        del content["spec"][key]
    return _written(yaml, content, path)


def with_words(
    text: str, key: tuple[str, str], words: Iterable[str], path: Path
) -> tuple[str, Topology]:
    """Add words to the list `spec.<part>.<key>`, on one line where it is new.

    Raises UsageError where the result is no topology.
    """
    yaml, content = _read(text)
    part, name = key
    holder = content["spec"].setdefault(part, {})
    if not holder.get(name):
        holder[name] = yaml.load("[x]")
        del holder[name][0]
    holder[name].extend(words)
    return _written(yaml, content, path)


def _read(text: str) -> tuple[Any, Any]:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml, yaml.load(text)


def _plain_list(yaml: Any) -> Any:
    """One item a line, whatever the empty list looked like."""
    return yaml.load("- x").__class__()


def _written(yaml: Any, content: Any, path: Path) -> tuple[str, Topology]:
    stream = io.StringIO()
    yaml.dump(content, stream)
    text = stream.getvalue()
    return text, parse(text, path)
