"""Brings files from outside of a kustomization's folder into it, for a build. Pure.

Flux lets a kustomization load any file of the repository. kustomize is not run that way here: it
could then load other files of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.reachable import join, kustomization, resolve, within
from k8s_ucp.gitops.manifests.yaml_text import dump_all

_LISTS = ("resources", "patchesStrategicMerge", "configurations", "crds")
"""Lists of files and folders."""
_BY_PATH = ("patches", "patchesJson6902", "replacements")
_GENERATORS = ("configMapGenerator", "secretGenerator")
_FOLDER = "from-outside"


def with_files_inside(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files, with copies of those that kustomizations load from outside of their folders."""
    found = dict(files)
    for file in sorted(files):
        folder, _, name = file.rpartition("/")
        if name not in KUSTOMIZATIONS:
            continue

        def inside(entry: str, folder: str = folder) -> str:
            path = resolve(folder, entry)
            if path is None or path not in files or within(path, folder):
                return entry
            found[join(folder, f"{_FOLDER}/{path}")] = files[path]
            return f"{_FOLDER}/{path}"

        content = kustomization(files, folder)
        if (changed := _with(content, inside)) != content:
            found[file] = dump_all([changed]).encode()
    return found


def _with(content: Mapping[str, Any], inside: Callable[[str], str]) -> dict[str, Any]:
    """A kustomization with other names of the files that it loads."""
    found = dict(content)
    ways = ((_LISTS, _changed), (_BY_PATH, _with_path), (_GENERATORS, _with_files))
    for keys, changed in ways:
        for key in keys:
            if isinstance(content.get(key), list):
                found[key] = [changed(each, inside) for each in content[key]]
    return found


def _changed(entry: Any, inside: Callable[[str], str]) -> Any:
    return inside(entry) if isinstance(entry, str) else entry


def _with_path(patch: Any, inside: Callable[[str], str]) -> Any:
    has_path = isinstance(patch, dict) and isinstance(patch.get("path"), str)
    return {**patch, "path": inside(patch["path"])} if has_path else patch


def _with_files(generator: Any, inside: Callable[[str], str]) -> Any:
    if not isinstance(generator, dict):
        return generator
    found = dict(generator)
    if isinstance(files := generator.get("files"), list):
        found["files"] = [_with_key(each, inside) for each in files]
    if isinstance(variables := generator.get("envs"), list):
        found["envs"] = [_changed(each, inside) for each in variables]
    return found


def _with_key(entry: Any, inside: Callable[[str], str]) -> Any:
    """An entry of `files`, which keeps its key: `key=path`, or a path with the key as its end."""
    if not isinstance(entry, str):
        return entry
    key, equals, path = entry.partition("=")
    if not equals:
        key, path = entry.rpartition("/")[2], entry
    moved = inside(path)
    return entry if moved == path else f"{key}={moved}"
