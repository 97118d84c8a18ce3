"""Edits the user's ucp.yaml: adds or removes an item, and keeps every other line.

Text is inserted or cut at the marks of YAML nodes, so that indentation, line endings, quotes and
comments are preserved. The result is parsed; if it is not what was intended (anchors, multi-line
text), the YAML library dumps the whole file, which changes its indentation.
"""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UsageError, unknown_name
from k8s_ucp.topology.file import parse
from k8s_ucp.topology.model import Topology
from k8s_ucp.topology.text_edit import (
    append_items,
    append_key,
    child,
    indentation_of_lists,
    items_of,
    line_end,
    remove_item,
    remove_key,
)

_OF_ENVIRONMENTS = ("values", "overlays")
"""Keys of an app with one value per environment."""


def with_item(text: str, key: str, item: Mapping[str, Any], path: Path) -> tuple[str, Topology]:
    """Add an item to the list `spec.<key>`: (text, its topology).

    path: of the file, for messages. Raises UsageError if the name exists, or the result is not a
    valid topology.
    """
    return with_items(text, key, [item], path)


def with_items(
    text: str, key: str, items: Sequence[Mapping[str, Any]], path: Path
) -> tuple[str, Topology]:
    """Add several items to a list, reading and validating the text once; see `with_item`."""
    names = _names(text, key)
    for item in items:
        if item["name"] in names:
            raise UsageError(
                f"'{item['name']}' already exists in {key} of {path.name}",
                next=f"choose another name, or edit {path}",
            )
        names.append(item["name"])

    def change(content: Any, new_list: Callable[[], Any]) -> None:
        spec = content["spec"] = content.get("spec") or {}
        spec[key] = spec.get(key) or new_list()
        spec[key].extend(map(dict, items))

    def put_in(text: str) -> str:
        return _put_in(text, ("spec",), key, [*items])

    return _changed(text, path, change, put_in)


def without_item(text: str, key: str, name: str, path: Path) -> tuple[str, Topology]:
    """Remove an item from the list `spec.<key>`. Raises UsageError if it does not exist."""
    names = _names(text, key)
    if name not in names:
        raise unknown_name(
            key.removesuffix("s"),
            name,
            names,
            next="ucp diff, which also lists what only the repositories have",
        )
    index = names.index(name)

    def change(content: Any, _: Callable[[], Any]) -> None:
        del content["spec"][key][index]
        if not content["spec"][key]:
            del content["spec"][key]

    return _changed(text, path, change, lambda text: _take_out(text, key, index))


def without_environment(text: str, name: str, path: Path) -> tuple[str, Topology]:
    """Remove an environment, also from apps. Raises UsageError if it does not exist."""
    if name not in _names(text, "environments"):
        return without_item(text, "environments", name, path)
    index = _names(text, "environments").index(name)
    entries = [
        (number, key)
        for number, app in enumerate(((_safe(text) or {}).get("spec") or {}).get("apps") or ())
        for key in _OF_ENVIRONMENTS
        if name in (app.get(key) or {})
    ]

    def change(content: Any, _: Callable[[], Any]) -> None:
        spec = content["spec"]
        for number, key in entries:
            app = spec["apps"][number]
            del app[key][name]
            if not app[key]:
                del app[key]
        del spec["environments"][index]
        if not spec["environments"]:
            del spec["environments"]

    def take_out(text: str) -> str:
        for number, key in entries:
            app = items_of(_at(text, ("spec", "apps")))[number]
            entry = child(app, key)
            alone = len(entry.value) == 1
            text = remove_key(text, app, key) if alone else remove_key(text, entry, name)
        return _take_out(text, "environments", index)

    return _changed(text, path, change, take_out)


def with_overlays(
    text: str, folders: Mapping[str, str], environment: str, path: Path
) -> tuple[str, Topology]:
    """Set the overlays of apps for an environment. folders: {app: folder}

    Raises UsageError if an app does not exist, or the result is not a valid topology.
    """
    existing = _names(text, "apps")
    if unknown := [each for each in folders if each not in existing]:
        raise unknown_name("app", unknown[0], existing, next="ucp app list")

    def change(content: Any, _: Callable[[], Any]) -> None:
        for app, folder in folders.items():
            item = content["spec"]["apps"][existing.index(app)]
            item["overlays"] = {**(item.get("overlays") or {}), environment: folder}

    def put_in(text: str) -> str:
        if text and not text.endswith("\n"):
            text += line_end(text)
        for app, folder in folders.items():
            item = items_of(_at(text, ("spec", "apps")))[existing.index(app)]
            entry = child(item, "overlays", missing=None)
            line = f"{_flow(environment)}: {_flow(folder)}"
            if entry is None:
                text = append_key(text, item, [f"overlays: {{{line}}}"], f"overlays: {{{line}}}")
            else:
                text = append_key(text, entry, [line], line)
        return text

    return _changed(text, path, change, put_in)


def with_state(text: str, names: Iterable[str], state: str, path: Path) -> tuple[str, Topology]:
    """Set `state` of environments; the default, running, is not written.

    Raises UsageError if an environment does not exist.
    """
    wanted, existing = list(names), _names(text, "environments")
    if unknown := [each for each in wanted if each not in existing]:
        raise unknown_name("environment", unknown[0], existing, next="ucp env list")
    indexes = [existing.index(each) for each in wanted]

    def change(content: Any, _: Callable[[], Any]) -> None:
        for index in indexes:
            item = content["spec"]["environments"][index]
            item.pop("state", None)
            if state != "running":
                item["state"] = state

    def put_in(text: str) -> str:
        if text and not text.endswith("\n"):
            text += line_end(text)
        for index in indexes:
            text = _with_state_at(text, index, state)
        return text

    return _changed(text, path, change, put_in)


def _with_state_at(text: str, index: int, state: str) -> str:
    way = ("spec", "environments")
    item = items_of(_at(text, way))[index]
    if child(item, "state", missing=None) is not None:
        if item.value[0][0].value == "state":
            raise LookupError("it shares the line of the item's hyphen")
        text = remove_key(text, item, "state")
        item = items_of(_at(text, way))[index]
    line = f"state: {state}"
    return text if state == "running" else append_key(text, item, [line], line)


def with_words(
    text: str, key: tuple[str, str], words: Iterable[str], path: Path
) -> tuple[str, Topology]:
    """Add words to the list `spec.<part>.<key>`; a new list is written on one line.

    Raises UsageError if the result is not a valid topology.
    """
    part, name = key
    new = list(words)

    def change(content: Any, _: Callable[[], Any]) -> None:
        holder = content["spec"] = content.get("spec") or {}
        holder[part] = holder = holder.get(part) or {}
        if not holder.get(name):
            holder[name] = _yaml().load("[x]")
            del holder[name][0]
        holder[name].extend(new)

    def put_in(text: str) -> str:
        return _put_in(text, ("spec", part), name, new, one_line=True)

    return _changed(text, path, change, put_in)


def _names(text: str, key: str) -> list[Any]:
    """Names of the items of `spec.<key>`."""
    spec = (_safe(text) or {}).get("spec") or {}
    return [each.get("name") for each in spec.get(key) or ()]


def _changed(
    text: str,
    path: Path,
    change: Callable[[Any, Callable[[], Any]], None],
    by_text: Callable[[str], str],
) -> tuple[str, Topology]:
    """The changed text: edited in place, or dumped if that gives another result than `change`."""
    meant = copy.deepcopy(_safe(text))
    change(meant, list)
    try:
        new = by_text(text)
        if _safe(new) == meant:
            return new, parse(new, path, written=False)
    except (LookupError, ValueError):
        pass
    yaml = _yaml()
    content = yaml.load(text)
    change(content, lambda: yaml.load("- x").__class__())
    stream = io.StringIO()
    yaml.dump(content, stream)
    new = stream.getvalue()
    if "\r\n" in text:
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new, parse(new, path, written=False)


def _take_out(text: str, key: str, index: int) -> str:
    """Remove an item of the list `spec.<key>`, and the list if it was the last one."""
    spec = _at(text, ("spec",))
    if len(items_of(child(spec, key))) == 1:
        return remove_key(text, spec, key)
    return remove_item(text, child(spec, key), index)


def _put_in(
    text: str, way: tuple[str, ...], key: str, items: list[Any], *, one_line: bool = False
) -> str:
    """Append items to a list, which is created if it is missing or empty.

    Raises LookupError if `way` does not exist.
    """
    if text and not text.endswith("\n"):
        text += line_end(text)
    indent = indentation_of_lists(_at(text, ("spec",)))
    existing = child(_at(text, way), key, missing=None)
    if items_of(existing):
        blocks, flows = [*map(_block, items)], [*map(_flow, items)]
        return append_items(text, _at(text, (*way, key)), blocks, flows)
    if existing is not None:
        text = remove_key(text, _at(text, way), key)
    flow = f"[{', '.join(map(_flow, items))}]"
    block = [f"{key}: {flow}"]
    if not one_line:
        block = [f"{key}:"]
        for each in items:
            first, *others = _block(each)
            block.append(f"{' ' * indent}- {first}")
            block += [f"{' ' * indent}  {line}" for line in others]
    return append_key(text, _at(text, way), block, f"{key}: {flow}")


def _block(item: Any) -> list[str]:
    """A value in block style: one key per line."""
    return _dumped(_yaml(), item)


def _flow(item: Any) -> str:
    """A value in flow style: on one line."""
    yaml = _yaml()
    yaml.default_flow_style = True
    return " ".join(_dumped(yaml, item))


def _dumped(yaml: Any, item: Any) -> list[str]:
    stream = io.StringIO()
    yaml.dump(dict(item) if isinstance(item, Mapping) else item, stream)
    return [each for each in stream.getvalue().splitlines() if each != "..."]


def _root(text: str) -> Any:
    from k8s_ucp.topology.yaml_reader import compose

    return compose(text)


def _at(text: str, way: Iterable[str]) -> Any:
    """The node at a path of keys. Raises LookupError."""
    return functools.reduce(child, way, _root(text))


def _safe(text: str) -> Any:
    from k8s_ucp.topology.yaml_reader import read

    return read(text)


def _yaml() -> Any:
    from k8s_ucp import yaml_io

    return yaml_io.editor(width=4096, indent_lists=True)
