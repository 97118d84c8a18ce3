"""What a kustomization takes in on this machine: its images, and folders outside of its own. Pure.

Folders are paths relative to the root of what can be looked at, "" is the root itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS, Files
from k8s_ucp.gitops.manifests.own import images, split_image
from k8s_ucp.gitops.manifests.sources import entries
from k8s_ucp.gitops.manifests.yaml_text import documents

Tags = dict[str, set[str]]
"""{image: its tags}; "" stands for none, or a digest."""


def images_of(files: Files, folder: str = "") -> list[tuple[str, str]]:
    """(image, tag) as a kustomization gives them; without those that have several tags, or none."""
    tags = _images(files, folder, frozenset())
    known = {name: each - {""} for name, each in tags.items()}
    return sorted((name, next(iter(each))) for name, each in known.items() if len(each) == 1)


def _images(files: Files, folder: str, way: frozenset[str]) -> Tags:
    found: Tags = {}
    content = kustomization(files, folder)
    if folder in way:
        return found
    for entry in entries(content):
        path = _join(folder, entry)
        if path is None:
            continue
        if path in files:
            _merge(found, _in_file(files, path))
        else:
            _merge(found, _images(files, path, way | {folder}))
    for each in _maps(content, "images"):
        name = str(each.get("name"))
        if name not in found:
            continue
        tags = found.pop(name)
        if each.get("digest"):
            tags = {""}
        elif each.get("newTag") is not None:
            tags = {str(each["newTag"])}
        _merge(found, {str(each.get("newName") or name): tags})
    return found


def _in_file(files: Files, path: str) -> Tags:
    found: Tags = {}
    try:
        content = documents(files[path], path)
    except UsageError:
        return found
    for image in images(content):
        name, tag = split_image(image)
        found.setdefault(name, set()).add(tag)
    return found


def _merge(found: Tags, more: Tags) -> None:
    for name, tags in more.items():
        found.setdefault(name, set()).update(tags)


@dataclass(frozen=True)
class FolderTree:
    """A tree of folders, as it is looked at: names of the files below a folder, and contents."""

    names: Callable[[str], list[str]]
    """Paths of the files below a folder, relative to it."""
    read: Callable[[str], bytes | None]
    """The content of a file; None where there is none."""

    def below(self, folder: str) -> dict[str, bytes]:
        """{path relative to the folder: content}"""
        found = {name: self.read(_below(folder, name)) for name in self.names(folder)}
        return {name: content for name, content in found.items() if content is not None}


def taken_in(place: FolderTree, folders: Collection[str]) -> dict[str, bytes]:
    """{path: content} of kustomizations with all that they take in, wherever it lies in the tree.

    What isn't there is left out; kustomize says so.
    """
    files: dict[str, bytes] = {}
    waiting, seen = list(folders), set[str]()
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        for name in KUSTOMIZATIONS:
            if (content := place.read(_below(folder, name))) is not None:
                files[_below(folder, name)] = content
                break
        for text in _texts(kustomization(files, folder)):
            path = _join(folder, text)
            if path is None or path in files:
                continue
            if (content := place.read(path)) is not None:
                files[path] = content
            else:
                names = (_below(path, name) for name in KUSTOMIZATIONS)
                waiting += [path] if any(place.read(each) is not None for each in names) else []
    return files


def moved_up(files: Files, folder: str) -> tuple[str, dict[str, bytes]]:
    """(folder, files) relative to the nearest folder that holds this one and every file."""
    root = posixpath.commonpath([f"/{folder}", *(f"/{each.rpartition('/')[0]}" for each in files)])
    start = root.strip("/")
    start += "/" if start else ""
    return folder.removeprefix(start.rstrip("/")).strip("/"), {
        path.removeprefix(start): content for path, content in files.items()
    }


def kustomization(files: Files, folder: str) -> Mapping[str, Any]:
    """Of a folder; empty where there is none, or one that can't be read."""
    for name in KUSTOMIZATIONS:
        path = _below(folder, name)
        if path in files:
            try:
                found = documents(files[path], path)
            except UsageError:
                return {}
            return found[0] if found and isinstance(found[0], dict) else {}
    return {}


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value that may be a path: `files` may hold `key=path`."""
    if isinstance(value, str):
        if "\n" not in value and "\0" not in value and "://" not in value:
            yield value.partition("=")[2] or value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _maps(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = content.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _join(folder: str, entry: str) -> str | None:
    """None for what leads out of the tree, or is no path."""
    if not entry or entry.startswith("/") or "\n" in entry or "://" in entry:
        return None
    path = posixpath.normpath(posixpath.join(folder, entry))
    return None if path == ".." or path.startswith("../") else "" if path == "." else path
