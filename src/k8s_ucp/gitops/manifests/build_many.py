"""Builds many overlays in few kustomize runs, since most of the time is its start-up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.manifests.sources import find_outside
from k8s_ucp.gitops.manifests.yaml_text import load_all, unreadable

Object = Mapping[str, Any]

AT_ONCE = 100
"""Maximum number of overlays per run: kustomize compares every object with every other."""
WORKERS = 2
_OVERLAY = "k8s-ucp.io/overlay"


@dataclass
class Built:
    """The objects of a repository's folders."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    """{folder: its objects}."""
    failures: dict[str, str] = field(default_factory=dict)
    """{folder: why kustomize can't build it}."""


def build_many(
    kustomize: Path, root: Path, groups: Sequence[Sequence[str]], *, also: Collection[str] = ()
) -> Built:
    """Build folders below root. groups: folders that have no object in common, built together.

    If a build fails, the group is halved until each failing folder is built alone. also: git
    transports besides https and ssh.
    """
    outside = _outside(root, groups)
    chunks = [
        [each for each in group[start : start + AT_ONCE] if each not in outside]
        for group in groups
        for start in range(0, len(group), AT_ONCE)
    ]
    built = Built(failures=outside)
    program = _Kustomize(kustomize, frozenset(also))
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        for each in pool.map(
            lambda chunk: _build(program, root.resolve(), chunk), filter(None, chunks)
        ):
            built.objects |= {
                folder: [item for one in found for item in unlisted(one)]
                for folder, found in each.objects.items()
            }
            built.failures |= each.failures
    return built


def _outside(root: Path, groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """{folder that includes one from outside of the root: the message}."""
    failures = {}
    for folder in {each for group in groups for each in group}:
        try:
            found = find_outside(root / folder, root)
        except (UcpError, OSError):
            continue  # kustomize says why it can't be read.
        if found:
            name = os.path.relpath(found[0], root.resolve())
            failures[folder] = f"{name} includes {found[1]}, which is outside of the repository"
    return failures


@dataclass(frozen=True)
class _Kustomize:
    program: Path
    also: frozenset[str]

    def objects(self, folder: Path) -> list[Object]:
        return objects(build(self.program, folder, also=self.also))


def _build(kustomize: _Kustomize, root: Path, folders: list[str]) -> Built:
    try:
        if len(folders) == 1:
            return Built({folders[0]: kustomize.objects(root / folders[0])})
        return Built(_indexed(kustomize, root, folders))
    except UcpError as error:
        if len(folders) == 1:
            return Built(failures={folders[0]: error.message.replace(f"{root}{os.sep}", "")})
    half = len(folders) // 2
    one, other = (_build(kustomize, root, part) for part in (folders[:half], folders[half:]))
    return Built({**one.objects, **other.objects}, {**one.failures, **other.failures})


def _indexed(kustomize: _Kustomize, root: Path, folders: list[str]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {each: [] for each in folders}
    with tempfile.TemporaryDirectory(prefix="ucp-index-") as temporary:
        index = Path(temporary).resolve()
        for number, folder in enumerate(folders):
            folder_of_index = index / str(number)
            folder_of_index.mkdir()
            target = os.path.relpath(root / folder, folder_of_index)
            text = f'resources:\n  - "{target}"\ncommonAnnotations:\n  {_OVERLAY}: "{number}"\n'
            (folder_of_index / "kustomization.yaml").write_text(text, "utf-8")
        names = "".join(f'  - "{number}"\n' for number in range(len(folders)))
        (index / "kustomization.yaml").write_text(f"resources:\n{names}", "utf-8")
        for each in kustomize.objects(index):
            try:
                number = int(each["metadata"]["annotations"].pop(_OVERLAY))
            except (KeyError, TypeError, ValueError, AttributeError):
                # If kustomize can't annotate an object, its folder must be built alone.
                raise UcpError(f"an object lacks the annotation {_OVERLAY}") from None
            found[folders[number]].append(each)
    return found


def unlisted(item: Object) -> Iterator[Object]:
    """The objects that Argo CD applies for one: the items of a list, whatever its kind is."""
    items = item.get("items")
    if isinstance(items, list):
        yield from (each for each in items if isinstance(each, dict))
    else:
        yield item


def objects(text: str) -> list[Object]:
    """The objects in kustomize's output. Raises UcpError."""
    try:
        return [each for each in load_all(text) if isinstance(each, dict)]
    except unreadable() as error:
        words = str(error).splitlines()[:1] or [type(error).__name__]
        raise UcpError(f"not valid YAML: {words[0]}") from error


def first_equal(
    files: Mapping[str, bytes], environments: Sequence[str]
) -> dict[tuple[str, str], str]:
    """{(app, environment): the first environment whose overlay of the app has the same files}.

    files: of the app repository. Both overlays build the same objects, since their relative paths
    lead to the same places; not those of charts, whose releases have different names.
    """
    overlays: dict[tuple[str, str], dict[str, bytes]] = {}
    for path, content in files.items():
        match path.split("/", 4):
            case ["apps", app, "overlays", environment, name]:
                overlays.setdefault((app, environment), {})[name] = content
    return {
        (app, environment): next(each for each in environments if overlays.get((app, each)) == own)
        for (app, environment), own in overlays.items()
        if environment in environments and "Chart.yaml" not in own
    }
