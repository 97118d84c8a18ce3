"""Which values of a chart set the version of which image, as helm renders it. Pure.

Every value that may be a version gets a version of its own, all are rendered together, and an
image that has one of them afterwards is the one whose version that value sets. Nothing is guessed
from names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.gitops.manifests.own import split_image
from k8s_ucp.gitops.manifests.value_edit import Path, node_at, path_text, scalar_text
from k8s_ucp.gitops.manifests.yaml_tree import YamlNode
from k8s_ucp.gitops.promotion.targets.helm import DEEPEST, Values, candidates
from k8s_ucp.gitops.promotion.targets.kinds import Reference, Target, Value

_MOST = 200
"""Values that are looked at."""


@dataclass(frozen=True)
class Probe:
    """values: laid over all others. paths: by the version that one of them gets there."""

    values: Mapping[str, Any]
    paths: Mapping[str, Path]


@dataclass(frozen=True)
class Unlisted:
    """An image that no target changes. path: the value that sets its version, where one does."""

    image: str
    path: Path = ()


Subcharts = Sequence[tuple[Path, YamlNode]]
"""Values of charts that a chart depends on: (where they stand in its own, what they say)."""


def probe(
    values: Values, targets: Sequence[Target], images: Iterable[str], subcharts: Subcharts = ()
) -> Probe:
    """images: as the chart renders them now. Positions in lists can't be laid over."""
    now = {version.partition("@")[0] for _, version in map(split_image, images)} - {""}
    found: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for target in targets:
        for spot in target.spots:
            if not isinstance(spot, Value | Reference):
                continue
            path = _own(values, spot.file, spot.path)
            if path and not any(isinstance(each, int) for each in path):
                version = _version(len(paths), now)
                text = f"{spot.name}:{version}" if isinstance(spot, Reference) else version
                paths[version] = path
                _set(found, path, text)
                if isinstance(spot, Value) and spot.digest:
                    _set(found, _own(values, spot.digest_file, spot.digest_path), "")
    known = set(paths.values())
    below = itertools.chain(_scalars(values, now), _of_subcharts(subcharts, now))
    more = (path for path in below if path not in known)
    for path in itertools.islice(dict.fromkeys(more), _MOST):
        version = _version(len(paths), now)
        paths[version] = path
        _set(found, path, version)
    return Probe(found, paths)


def unlisted(
    there: Probe,
    targets: Sequence[Target],
    values: Values,
    before: Iterable[str],
    after: Iterable[str],
) -> list[Unlisted]:
    """Images that no target changes. before, after: as the chart renders them without and with
    the probe's values.
    """
    listed = {
        _own(values, spot.file, spot.path)
        for each in targets
        for spot in each.spots
        if isinstance(spot, Value | Reference)
    }
    set_by: dict[str, Path] = {}
    for name, version in map(split_image, after):
        path = there.paths.get(version.partition("@")[0])
        if path and (path in listed or name not in set_by):
            set_by[name] = path
    tried = {*there.paths.values()}
    # What lies in a list can't be tried: there the name counts.
    named = {
        each.image
        for each in targets
        for spot in each.spots
        if isinstance(spot, Value | Reference) and _own(values, spot.file, spot.path) not in tried
    }
    names = dict.fromkeys(name for name, _ in map(split_image, before))
    return [
        Unlisted(name, set_by.get(name, ()))
        for name in names
        if set_by.get(name) not in listed and not (name not in set_by and name in named)
    ]


def proposed(there: Probe, after: Iterable[str]) -> list[str]:
    """Entries of `.promotion.yaml` for images whose version a value sets; each value in one."""
    by_image: dict[str, list[str]] = {}
    taken: set[Path] = set()
    for name, version in map(split_image, after):
        path = there.paths.get(version.partition("@")[0])
        if path and path not in taken:
            taken.add(path)
            by_image.setdefault(name, []).append(path_text(path))
    return [
        f"{{image: {name}, path: {ways[0]}}}"
        if len(ways) == 1
        else f"{{image: {name}, path: [{', '.join(ways)}]}}"
        for name, ways in by_image.items()
    ]


def _own(values: Values, file: str, path: Path) -> Path:
    """A path without what is in front of the values in their file."""
    layer = next((each for each in values.layers if each.file == file), None)
    start = layer.prefix if layer else ()
    return path[len(start) :] if path[: len(start)] == start else ()


def _scalars(values: Values, texts: set[str]) -> Iterator[Path]:
    """Paths of values that say one of these texts, without positions in lists."""
    for layer in values.layers:
        yield from _below(node_at(layer.root, layer.prefix), (), texts)


def _of_subcharts(subcharts: Subcharts, texts: set[str]) -> Iterator[Path]:
    """The same of charts below, and what looks like a tag there: it may be empty for a default."""
    for start, root in subcharts:
        yield from _below(root, start, texts)
        for path in candidates(root, ()):
            if "tag" in str(path[-1]).lower() and not any(isinstance(each, int) for each in path):
                yield (*start, *path)


def _below(node: YamlNode | None, path: Path, texts: set[str]) -> Iterator[Path]:
    if node is None or len(path) > DEEPEST:
        return
    for key, value in node.resolved().pairs:
        inner = value.resolved()
        if key.kind != "scalar":
            continue
        # A number may be no version at all: what is no text any more would fail elsewhere.
        text = scalar_text(inner) if inner.kind == "scalar" else ""
        if text in texts and not text.isdecimal():
            yield (*path, key.value)
        yield from _below(inner, (*path, key.value), texts)


def _version(number: int, taken: set[str]) -> str:
    """A tag that is a semantic version too, as charts compare some."""
    free = (f"97.{number}.{patch}" for patch in itertools.count())
    return next(each for each in free if each not in taken)


def _set(values: dict[str, Any], path: Path, text: str) -> None:
    if not path:
        return
    for key in path[:-1]:
        inner = values.setdefault(str(key), {})
        if not isinstance(inner, dict):
            return
        values = inner
    values[str(path[-1])] = text
