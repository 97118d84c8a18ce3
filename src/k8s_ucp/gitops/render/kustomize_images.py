"""Which images, in which version, a kustomization gives its containers. Pure.

It is read from the files, not built: bases on other hosts and patches that select objects by labels
can't be followed, and an image that they may change is left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import Files
from k8s_ucp.gitops.manifests.images_and_ports import (
    may_have_containers,
    one_version,
    split_image,
)
from k8s_ucp.gitops.manifests.reachable import kustomization, resolve
from k8s_ucp.gitops.manifests.sources import entries
from k8s_ucp.gitops.manifests.yaml_text import documents, maps, part

_LISTS = ("containers", "initContainers")
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")
_DEEPEST = 100
"""Kustomizations of which each lists the next."""
_SELECTORS = frozenset({"kind", "name", "group", "version"})
"""Of a patch's target: what can be compared here. Groups and versions rarely tell kinds apart."""


@dataclass(frozen=True)
class _Container:
    """A container of an object, or an image that a patch sets somewhere else."""

    image: str
    version: str
    """As `split_image` has it."""
    kind: str = ""
    object: str = ""
    """The name of the object that it belongs to; "" if that isn't known."""
    pointer: str = ""
    """The JSON pointer of its image in the object."""
    name: str = ""

    @property
    def listed_in(self) -> str:
        """The JSON pointer of its list, of which strategic merge patches select an item by name."""
        return self.pointer.rpartition("/")[0].rpartition("/")[0]


@dataclass
class _Found:
    containers: list[_Container] = field(default_factory=list)
    unseen: bool = False
    """There are images that can't be seen here, such as those of a base on another host."""
    components: set[str] = field(default_factory=set)
    """Folders of the components that have changed it."""

    def add(self, other: _Found) -> None:
        self.containers = list(dict.fromkeys((*self.containers, *other.containers)))
        self.unseen = self.unseen or other.unseen


def images_of(files: Files, folder: str = "") -> list[tuple[str, str]]:
    """(image, version) that a kustomization produces, filtered as in `one_version`."""
    found = _Found()
    _collect(found, files, folder, {folder: found})
    versions: dict[str, set[str]] = {}
    for each in found.containers:
        versions.setdefault(each.image, set()).add(each.version)
    return one_version(versions)


def _collect(
    found: _Found, files: Files, folder: str, known: dict[str, _Found], depth: int = 0
) -> None:
    """Add a kustomization's images to `found`. A component also changes its parent's images.

    known: what each folder has by itself, since many others, or itself, may list it.
    """
    if depth > _DEEPEST:
        found.unseen = True
        return
    content = kustomization(files, folder)
    components = content.get("components")
    for entry in entries({**content, "components": None}):
        path = resolve(folder, entry)
        if path is not None and path in files:
            found.add(_Found([*_in_file(files[path])]))
        elif path is not None and kustomization(files, path):
            if path not in known:
                known[path] = _Found()
                _collect(known[path], files, path, known, depth + 1)
            found.add(known[path])
        else:
            found.unseen = True
    for entry in components if isinstance(components, list) else []:
        path = resolve(folder, entry) if isinstance(entry, str) else None
        if path is not None and kustomization(files, path):
            if path not in found.components:
                found.components.add(path)
                _collect(found, files, path, known, depth + 1)
        else:
            found.unseen = True
    _apply_patches(found, files, folder, content)
    for each in maps(content, "images"):
        _apply_images(found, each)


def _apply_images(found: _Found, entry: Mapping[str, Any]) -> None:
    """What an entry of `images` makes of the images of its name."""
    name, tag, digest = str(entry.get("name")), entry.get("newTag"), entry.get("digest")
    if not any(each.image == name for each in found.containers):
        if not found.unseen:
            return
        found.containers.append(_Container(name, ""))
    changed = {"image": str(entry.get("newName") or name)}
    if tag is not None or digest:
        changed["version"] = f"{'' if tag is None else tag}{f'@{digest}' if digest else ''}"
    found.containers = [
        replace(each, **changed) if each.image == name else each for each in found.containers
    ]


def _apply_patches(found: _Found, files: Files, folder: str, content: Mapping[str, Any]) -> None:
    """Patches, inline or in files. An image whose place isn't found is added to the others."""
    listed = [content.get(name) for name in _PATCHES]
    for entry in (item for items in listed if isinstance(items, list) for item in items):
        text = entry.get("patch") or entry.get("path") if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            continue
        target = entry.get("target") if isinstance(entry, dict) else None
        data = files.get(resolve(folder, text) or "", text.encode())
        try:
            patches = documents(data, text)
        except UsageError:
            continue
        for patch in patches:
            for each in _set_images(patch):
                _set_image(found, each, target or _target_of(patch))


def _set_image(found: _Found, new: _Container, target: Mapping[str, Any]) -> None:
    same = [each for each in found.containers if _selects(target, each) and _is_place(new, each)]
    if not same:
        found.containers.append(new)
    found.containers = [
        replace(each, image=new.image, version=new.version) if each in same else each
        for each in found.containers
    ]


def _is_place(new: _Container, container: _Container) -> bool:
    """A strategic merge patch names the container, an operation of JSON patch its place."""
    if new.name:
        return (new.listed_in, new.name) == (container.listed_in, container.name)
    return bool(new.pointer) and new.pointer == container.pointer


def _target_of(patch: Any) -> Mapping[str, Any]:
    """The object that a strategic merge patch is for, by its own kind and name."""
    kind = patch.get("kind") if isinstance(patch, dict) else None
    return {"kind": kind, "name": part(patch, "metadata").get("name")}


def _selects(target: Mapping[str, Any], container: _Container) -> bool:
    """A target certainly selects the container's object: it says so by kind and name alone."""
    if not container.object or not isinstance(target, dict) or target.keys() - _SELECTORS:
        return False
    given = {"kind": container.kind, "name": container.object}
    selected = {key: target.get(key) for key in given if target.get(key)}
    return bool(selected) and all(
        _matches(str(value), given[key]) for key, value in selected.items()
    )


_REPEATING = re.compile(r"[*+?{]")
_LONGEST_NAME = 253


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches; False if Python may take years to find out."""
    repeating = len(_REPEATING.findall(pattern))
    too_long = len(text) > _LONGEST_NAME or len(pattern) > 10 * _LONGEST_NAME
    if too_long or repeating > 2 or (repeating and "(" in pattern):
        return pattern == text
    try:
        return re.fullmatch(pattern, text) is not None
    except (re.error, OverflowError, ValueError, RecursionError):
        return False


@functools.lru_cache(maxsize=512)
def _in_file(content: bytes) -> tuple[_Container, ...]:
    """Cached: the overlays of all environments have the files of the base in common."""
    if not may_have_containers(content):
        return ()
    try:
        return tuple(_containers(documents(content, "")))
    except UsageError:
        return ()


def _containers(
    value: Any, kind: str = "", name: str = "", pointer: str = ""
) -> Iterator[_Container]:
    """All containers in a value. An object in another one, such as a List, counts for itself."""
    if isinstance(value, dict):
        own = part(value, "metadata").get("name")
        if isinstance(value.get("kind"), str) and isinstance(own, str):
            kind, name, pointer = value["kind"], own, ""
        for key in _LISTS:
            listed = value.get(key)
            for at, each in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(each, dict) and isinstance(each.get("image"), str):
                    where = f"{pointer}/{key}/{at}/image"
                    container = str(each.get("name") or "")
                    yield _Container(*split_image(each["image"]), kind, name, where, container)
        for key, each in value.items():
            yield from _containers(each, kind, name, f"{pointer}/{key}")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _containers(each, kind, name, f"{pointer}/{at}")


def _set_images(value: Any, pointer: str = "") -> Iterator[_Container]:
    """Images in a patch: values of `image` keys, or of JSON patch operations."""
    if isinstance(value, dict):
        operation = str(value.get("path", "")).endswith("/image")
        image = value.get("value") if operation else value.get("image")
        if isinstance(image, str):
            name = "" if operation else str(value.get("name") or "")
            where = f"{pointer}/image" if name else str(value.get("path") or "")
            yield _Container(*split_image(image), pointer=where, name=name)
        for key, each in value.items():
            yield from _set_images(each, f"{pointer}/{key}")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _set_images(each, f"{pointer}/{at}")
