"""Finds file and line of a fault, as far as possible. Pure.

The checked objects were built from a chain of files: an overlay, its bases, their objects.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.sources import entries
from k8s_ucp.gitops.manifests.yaml_text import nodes, plain_text

Location = tuple[str, int]
"""(file, line number from 1)."""

_LINE = re.compile(r"^(\d+): |\bline (\d+)")
_TWICE = re.compile(r'\bline (\d+): mapping key "(.+)" already defined at line (\d+)')
"""kustomize names no file; both lines are counted from the beginning of the document."""
_UNKNOWN = re.compile(r'\bunknown field "(.+?)"')
_DOCUMENT = re.compile(r"^---.*\n", re.MULTILINE)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Locations:
    """Finds the locations of faults in one repository."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._nodes: dict[str, list[Any]] = {}
        self._objects: dict[str, dict[tuple[str, str], _Object]] = {}
        self._chains: dict[str, list[str]] = {}

    def find(self, fault: Fault) -> Location:
        files = self._files(fault.path)
        found = self._of_image(fault, files) or self._of_object(fault, files)
        if found is None and fault.value:
            found = self._of_text(fault.value, files)
        if found is None and fault.rule == "build-failed":
            found = self._of_build(fault.message, files)
        if found:
            return found
        named = _LINE.search(fault.message) if fault.path in self._tree.files else None
        return (files[0] if files else fault.path), int(named[1] or named[2]) if named else 1

    def _files(self, path: str) -> list[str]:
        """The files that may contain the cause of a fault at this path, closest first."""
        if path not in self._chains:
            self._chains[path] = list(dict.fromkeys(self._chain(path)))
        return self._chains[path]

    def _chain(self, path: str) -> Iterator[str]:
        tree = self._tree
        if path in tree.files:
            yield path
            return
        waiting, seen = [path], set()
        while waiting:
            folder = waiting.pop(0)
            if folder in seen:
                continue
            seen.add(folder)
            kustomization = self._kustomizations.get(folder)
            if kustomization is None:
                continue
            yield kustomization
            for entry in _taken_in(tree.kustomizations.get(folder, {})):
                target = posixpath.normpath(posixpath.join(folder, entry))
                if target in tree.files:
                    yield target
                else:
                    waiting.append(target)
        if path not in self._kustomizations:
            yield from self._below(path)

    def _below(self, folder: str) -> Iterator[str]:
        """Files of a chart or a plain directory, Chart.yaml first."""
        start = f"{folder}/"
        found = [each for each in self._tree.files if each.startswith(start)]
        yield from (each for each in (f"{start}Chart.yaml",) if each in self._tree.files)
        yield from (each for each in found if each.endswith((".yaml", ".yml", ".jsonnet")))

    @cached_property
    def _kustomizations(self) -> dict[str, str]:
        """{folder: path of its kustomization}."""
        found = {}
        for folder in self._tree.kustomizations:
            for name in KUSTOMIZATIONS:
                path = posixpath.normpath(posixpath.join(folder, name))
                if path in self._tree.files:
                    found[folder] = path
                    break
        return found

    def _of_image(self, fault: Fault, files: list[str]) -> Location | None:
        """The line of the tag in a kustomization, which overrides the tag in the object."""
        if fault.rule not in ("image-moving-tag", "image-untagged"):
            return None
        name, _, tag = fault.value.rpartition(":")
        for path in files:
            if path.rpartition("/")[2] not in KUSTOMIZATIONS:
                continue
            for document in self._documents(path):
                for image in getattr(_get(document, "images"), "value", None) or ():
                    entry = {key: str(_value(_get(image, key))) for key in ("name", "newName")}
                    written = _get(image, "newTag")
                    if name in entry.values() and written is not None and _value(written) == tag:
                        return path, written.start_mark.line + 1
        return None

    def _of_object(self, fault: Fault, files: list[str]) -> Location | None:
        if not fault.object:
            return None
        kind, _, name = fault.object.partition("/")
        for path in files:
            if not self._mentions(path, name):
                continue
            if path not in self._objects:
                self._objects[path] = _objects(self._documents(path))
            found = self._objects[path].get((kind, name))
            if found is not None:
                node = _walk(found.document, fault.field) if fault.field else None
                if node is None and fault.value:
                    node = found.scalars.get(fault.value)
                return path, (node or found.document).start_mark.line + 1
        return None

    def _mentions(self, path: str, name: str) -> bool:
        """Whether the file can contain an object of that name; parsing large files takes long."""
        content = self._tree.files[path]
        return name.encode() in content or b"\0" in content[:4]

    def _of_text(self, value: str, files: list[str]) -> Location | None:
        for path in files:
            for number, line in enumerate(self._text(path).splitlines(), 1):
                if value in line:
                    return path, number
        return None

    def _of_build(self, message: str, files: list[str]) -> Location | None:
        """The line of what kustomize rejects without naming a file."""
        if twice := _TWICE.search(message):
            key, lines = twice[2], (int(twice[1]), int(twice[3]))
            for path in files:
                if line := _line_of_second(self._text(path), key, *lines):
                    return path, line
        unknown = _UNKNOWN.search(message)
        return self._of_text(f"{unknown[1]}:", files) if unknown else None

    def _documents(self, path: str) -> list[Any]:
        if path not in self._nodes:
            self._nodes[path] = nodes(self._text(path))
        return self._nodes[path]

    def _text(self, path: str) -> str:
        try:
            return plain_text(self._tree.files[path], path)
        except UcpError:
            return ""


def _line_of_second(text: str, key: str, second: int, first: int) -> int | None:
    """The line of a key that is twice in a mapping; second, first: its lines in the document."""
    begins = [0, *(each.end() for each in _DOCUMENT.finditer(text))]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        lines = text[begin:end].split("\n")
        both = [lines[n - 1].lstrip(" -").strip("\"'") for n in (first, second) if n <= len(lines)]
        if len(both) == 2 and all(each.startswith(key) for each in both):
            return text.count("\n", 0, begin) + second
    return None


def _taken_in(kustomization: Any) -> Iterator[str]:
    """Folders and files that a kustomization includes, with its patches."""
    yield from (each for each in entries(kustomization) if "\n" not in each)
    for name in ("patches", "patchesStrategicMerge", "patchesJson6902"):
        found = kustomization.get(name)
        for each in found if isinstance(found, list) else ():
            path = each.get("path") if isinstance(each, dict) else each
            if isinstance(path, str) and "\n" not in path:
                yield path


def _get(node: Any, key: str) -> Any:
    """The value node of a key in a mapping."""
    pairs = getattr(node, "value", None)
    for pair in pairs if getattr(node, "id", "") == "mapping" and pairs else ():
        if pair[0].value == key:
            return pair[1]
    return None


def _value(node: Any) -> Any:
    return node.value if getattr(node, "id", "") == "scalar" else None


def _walk(node: Any, field: str) -> Any:
    """The deepest existing node on the path to a field; in a mapping, its key node."""
    found = None
    for key, index in _STEP.findall(field):
        if index:
            items = node.value if getattr(node, "id", "") == "sequence" else ()
            node = items[int(index)] if int(index) < len(items) else None
            found = node or found
        else:
            pairs = node.value if getattr(node, "id", "") == "mapping" else ()
            pair = next((pair for pair in pairs if pair[0].value == key), None)
            node = pair[1] if pair else None
            found = pair[0] if pair else found
        if node is None:
            break
    return found


class _Object:
    """A document with an object; indexed, since an object can have thousands of faults."""

    def __init__(self, document: Any) -> None:
        self.document = document

    @cached_property
    def scalars(self) -> dict[str, Any]:
        """Value -> the first scalar node with it."""
        found: dict[str, Any] = {}
        waiting, seen = [self.document], set()
        while waiting:
            each = waiting.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if each.id == "scalar":
                found.setdefault(each.value, each)
            if each.id == "sequence":
                waiting += reversed(each.value)
            if each.id == "mapping":
                waiting += [part for pair in reversed(each.value) for part in reversed(pair)]
        return found


def _objects(documents: list[Any]) -> dict[tuple[str, str], _Object]:
    """(kind, name) -> the first object of that name."""
    found: dict[tuple[str, str], _Object] = {}
    for each in documents:
        kind, name = _value(_get(each, "kind")), _value(_get(_get(each, "metadata"), "name"))
        if kind is not None and name is not None:
            found.setdefault((kind, name), _Object(each))
    return found
