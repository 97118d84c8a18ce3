"""Determines which values of a chart set the version of which image, by rendering it. Pure.

Every value that may be a version is set to a unique version, and the chart is rendered once with
all of them: the value that sets an image's version is the one whose version the image then has.
Nothing is inferred from names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.gitops.manifests.images_and_ports import split_image
from k8s_ucp.gitops.manifests.value_edit import Path, node_at, path_text, scalar_text
from k8s_ucp.gitops.manifests.yaml_tree import YamlNode
from k8s_ucp.gitops.promotion.targets.helm import (
    DEEPEST,
    Values,
    candidates,
    lacks_version,
)
from k8s_ucp.gitops.promotion.targets.kinds import Reference, Target, Value, on_hub

_MOST = 200
"""Maximum number of values to test."""
_MAJOR = re.compile(r"v?(\d{1,4})\.\d")


@dataclass(frozen=True)
class Probe:
    """values: override all others. paths: the path that each test version was set at."""

    values: Mapping[str, Any]
    paths: Mapping[str, Path]

    def path(self, version: str) -> Path | None:
        """The path that sets the version of a rendered image, as `split_image` returns it."""
        tag, _, digest = version.partition("@")
        return self.paths.get(tag or digest)


@dataclass(frozen=True)
class Unlisted:
    """An image that no target of its name changes. path: the value of its version, if any."""

    image: str
    path: Path = ()


Subcharts = Sequence[tuple[Path, YamlNode]]
"""Values of a chart's dependencies: (path in the parent chart's values, content)."""


def probe(
    values: Values,
    targets: Sequence[Target],
    images: Iterable[str],
    subcharts: Subcharts = (),
    *,
    with_unset_tags: bool = True,
) -> Probe:
    """images: as currently rendered. Values inside lists can't be overridden.

    with_unset_tags: also set tags that images may get, which a strict schema may refuse.
    """
    now = {version.partition("@")[0] for _, version in map(split_image, images)} - {""}
    found: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for target in targets:
        for location in target.locations:
            if not isinstance(location, Value | Reference):
                continue
            path = _own(values, location.file, location.path)
            if not path or any(isinstance(each, int) for each in path):
                continue
            value = location if isinstance(location, Value) else None
            only_digest = value is not None and value.only_digest
            version = _digest(len(paths)) if only_digest else _version(len(paths), now)
            paths[version] = path
            if value and value.digest:
                digest_path = _own(values, value.digest_file, value.digest_path)
                _set(found, digest_path, version if only_digest else "")
            if isinstance(location, Reference):
                _set(found, path, f"{location.name}:{version}")
            elif not only_digest:
                _set(found, path, version)
    known = set(paths.values())
    below = itertools.chain(
        _scalars(values, now, with_unset_tags=with_unset_tags),
        _of_subcharts(subcharts, now, with_unset_tags=with_unset_tags),
    )
    more = (path for path in below if path not in known)
    for path in itertools.islice(dict.fromkeys(more), _MOST):
        version = _version(len(paths), now)
        paths[version] = path
        _set(found, path, version)
    return Probe(found, paths)


def unlisted(
    probed: Probe,
    targets: Sequence[Target],
    values: Values,
    before: Iterable[str],
    after: Iterable[str],
) -> list[Unlisted]:
    """Images that no target of their name changes.

    before, after: those rendered without and with the probe.
    """
    by_name: dict[str, set[Path]] = {}
    for target in targets:
        by_name.setdefault(on_hub(target.image), set()).update(
            _own(values, location.file, location.path)
            for location in target.locations
            if isinstance(location, Value | Reference)
        )
    listed = set[Path]().union(*by_name.values())
    set_by: dict[str, Path] = {}
    for name, version in map(split_image, after):
        path = probed.path(version)
        if path and (path in listed or name not in set_by):
            set_by[name] = path
    tried = {*probed.paths.values()}
    # Values inside lists can't be tested, so their images are matched by name.
    named = {
        target.image
        for target in targets
        for location in target.locations
        if isinstance(location, Value | Reference)
        and _own(values, location.file, location.path) not in tried
    }
    names = dict.fromkeys(name for name, _ in map(split_image, before))
    found = []
    for name in names:
        path = set_by.get(name, ())
        # A promotion of this name would change them instead, such as those of a marketplace.
        others = by_name.get(on_hub(name), set())
        if (path in listed and others and path not in others) or (
            path not in listed and (path or name not in named)
        ):
            found.append(Unlisted(name, path))
    return found


def proposed(probed: Probe, after: Iterable[str]) -> list[str]:
    """Entries of `.promotion.yaml` for images whose version a value sets; each value once."""
    by_image: dict[str, list[str]] = {}
    taken: set[Path] = set()
    for name, version in map(split_image, after):
        path = probed.path(version)
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
    """A path without the prefix of the values in their file."""
    layer = next((each for each in values.layers if each.file == file), None)
    start = layer.prefix if layer else ()
    return path[len(start) :] if path[: len(start)] == start else ()


def _scalars(values: Values, texts: set[str], *, with_unset_tags: bool) -> Iterator[Path]:
    """Paths of values that equal one of these texts, and of tags that images may get.

    Values inside lists are left out.
    """
    for layer in values.layers:
        root = node_at(layer.root, layer.prefix)
        yield from _below(root, (), texts, with_unset_tags=with_unset_tags)


def _of_subcharts(
    subcharts: Subcharts, texts: set[str], *, with_unset_tags: bool
) -> Iterator[Path]:
    """Paths of these texts in subcharts, and of keys that look like a tag, even without value."""
    for start, root in subcharts:
        yield from _below(root, start, texts, with_unset_tags=with_unset_tags)
        for path in candidates(root, ()):
            if "tag" in str(path[-1]).lower() and not any(isinstance(each, int) for each in path):
                yield (*start, *path)


def _below(
    node: YamlNode | None, path: Path, texts: set[str], *, with_unset_tags: bool
) -> Iterator[Path]:
    if node is None or len(path) > DEEPEST:
        return
    for key, value in node.resolved().pairs:
        inner = value.resolved()
        if key.kind != "scalar":
            continue
        # Skip numbers: a number may not be a version, and a string in its place could break the
        # chart.
        text = scalar_text(inner) if inner.kind == "scalar" else ""
        if text in texts and not text.isdecimal():
            yield (*path, key.value)
        if with_unset_tags and lacks_version(key.value, inner):
            yield (*path, key.value, "tag")
        yield from _below(inner, (*path, key.value), texts, with_unset_tags=with_unset_tags)


def _version(number: int, taken: set[str]) -> str:
    """A tag that is also a semantic version, because some charts compare versions.

    Its major version is the highest one that is rendered now: some refuse a higher one.
    """
    majors = [int(found[1]) for each in taken if (found := _MAJOR.match(each))]
    free = (f"{max(majors, default=97)}.{minor}.{number}" for minor in itertools.count(97))
    return next(each for each in free if each not in taken)


def _digest(number: int) -> str:
    return f"sha256:{number:064x}"


def _set(values: dict[str, Any], path: Path, text: str) -> None:
    if not path:
        return
    for key in path[:-1]:
        inner = values.setdefault(str(key), {})
        if not isinstance(inner, dict):
            return
        values = inner
    values[str(path[-1])] = text
