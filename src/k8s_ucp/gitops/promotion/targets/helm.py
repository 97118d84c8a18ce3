"""Finds images in the values of a chart, and the files in which they are set. Pure.

All layers that Argo CD merges are considered: the chart's own values, the environment's values
files, and what `.argocd-source.yaml` sets. The last layer that sets a value is edited; a value that
only the chart's own file sets is added to the environment's file, with its whole list if it is in
one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from k8s_ucp.gitops.manifests.image_edit import DIGEST, NO_PIN, Pin
from k8s_ucp.gitops.manifests.value_edit import Path, list_of, node_at, path_text, text_at
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_documents
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.kinds import (
    BARE_DIGEST,
    BARE_DIGEST_OF,
    Reference,
    Target,
    Value,
    common,
    split_reference,
    value_pin,
)

CHART_FILE = "Chart.yaml"
SETTINGS = ".argocd-source.yaml"
_DEFAULTS = "values.yaml"
_IMAGE = re.compile(r"(?i).*image(?:_?name)?")
_IMAGES = re.compile(r"(?i).*images")
"""Of a mapping whose values are images: `images: {web: example.org/web:1.0}`."""
_FLAT = re.compile(r"(.*[iI]mage)_?(?:[tT]ag|[vV]ersion)")
_REPOSITORY = ("repository", "repo", "image", "name")
"""Keys beside the tag that contain the image's name."""
_EVERY_REGISTRY = ("global", "imageRegistry")
_BARE = re.compile("(?:[0-9a-f]{64})?")
DEEPEST = 12
"""Maximum nesting of mappings and lists in which values are searched."""


@dataclass(frozen=True)
class _Layer:
    """Values of one file. prefix: path of the values in it."""

    file: str
    root: YamlNode | None
    prefix: Path = ()


@dataclass(frozen=True)
class Values:
    """All values of a chart in an environment; later layers override earlier ones."""

    layers: tuple[_Layer, ...]
    own: str
    """The file to which an environment's values are added."""
    parameters: dict[str, int]
    """Parameters that `.argocd-source.yaml` sets, which override all: {path: position}."""
    document: int = 0
    """Position of the document in a single file."""

    def effective(self, path: Path) -> Sequence[_Layer]:
        """The layers that a path is read from. Helm doesn't merge lists: the last one replaces
        all others."""
        whole = list_of(path)
        if not whole:
            return self.layers
        holders = (
            each
            for each in reversed(self.layers)
            if node_at(each.root, (*each.prefix, *whole)) is not None
        )
        return [*itertools.islice(holders, 1)]

    def text(self, path: Path) -> str | None:
        """The effective value at a path; None if it isn't set."""
        for layer in reversed(self.effective(path)):
            found = text_at(layer.root, (*layer.prefix, *path))
            if found is not None:
                return found
        return None

    def location(self, path: Path) -> tuple[str, Path]:
        """(file, path in it) where a value is set, or should be set."""
        if path_text(path) in self.parameters:
            index = self.parameters[path_text(path)]
            return SETTINGS, ("helm", "parameters", index, "value")
        for layer in reversed(self.effective(path)):
            inside = (*layer.prefix, *path)
            if node_at(layer.root, inside) is not None and layer.file != _DEFAULTS:
                return layer.file, inside
        return self.own, path

    def list_file(self, path: Path) -> str:
        """The file to copy a path's list from before the path is set; "" if it needn't be."""
        from_chart = any(each.file == _DEFAULTS for each in self.effective(path))
        return _DEFAULTS if list_of(path) and from_chart and self.own != _DEFAULTS else ""

    def current(self, path: Path) -> str | None:
        """The effective value at a path, including parameters."""
        index = self.parameters.get(path_text(path))
        if index is not None:
            settings = next(each for each in self.layers if each.file == SETTINGS)
            return text_at(settings.root, ("helm", "parameters", index, "value"))
        return self.text(path)


def value_files(folder: EnvironmentFolder, env: str) -> list[str]:
    """The files with an environment's values in its folder; later ones take precedence."""
    settings = folder.tree(SETTINGS)
    listed = node_at(settings, ("helm", "valueFiles"))
    if listed is None:
        names = folder.names()
        return [each for each in (f"values-{env}.yaml", f"values-{env}.yml") if each in names]
    files = [item.resolved().value for item in listed.items]
    return [each for each in files if "://" not in each and ".." not in each and each[:1] != "/"]


def read_values(folder: EnvironmentFolder, env: str) -> Values:
    """The values of a chart in an environment. Raises NotEditable."""
    files = [each for each in value_files(folder, env) if folder.text(each) is not None]
    layers = [_Layer(name, folder.tree(name)) for name in dict.fromkeys([_DEFAULTS, *files])]
    settings = folder.tree(SETTINGS)
    if text_at(settings, ("helm", "values")):
        raise NotEditable(
            f"{folder.path}/{SETTINGS} sets helm.values, which overrides values files",
            next="write them as `valuesObject`, or in the environment's values file",
        )
    layers.append(_Layer(SETTINGS, settings, ("helm", "valuesObject")))
    listed = node_at(settings, ("helm", "parameters"))
    names = [text_at(item, ("name",)) or "" for item in listed.items] if listed else []
    parameters = {name: index for index, name in enumerate(names)}
    return Values(tuple(layers), files[-1] if files else _DEFAULTS, parameters)


def find_values(values: Values) -> list[Target]:
    """All values that look like an image's version."""
    paths = dict.fromkeys(
        path
        for layer in values.layers
        for path in candidates(node_at(layer.root, layer.prefix), ())
        if layer in values.effective(path)
    )
    found = [value_target(values, "", (path,)) for path in paths]
    images = [each.image or each.name for each in found]
    return [
        each if images.count(each.image or each.name) == 1 else _by_path(each) for each in found
    ]


def _by_path(target: Target) -> Target:
    """The same target named by its path, because the image's name isn't unique."""
    location = target.locations[0]
    assert isinstance(location, Value | Reference)
    name = target.line.partition("path: ")[2].rstrip("}")
    return Target(name, "image", target.pin, target.locations, target.image, target.line)


def value_target(values: Values, name: str, paths: Sequence[Path]) -> Target:
    """The target for one path, or for several that change together. name: "" uses the image's."""
    parts = [_read(values, path, name) for path in paths]
    image = name or next((each[2] for each in parts if each[2]), "")
    ways = [path_text(path) for path in paths]
    way = ways[0] if len(ways) == 1 else f"[{', '.join(ways)}]"
    return Target(
        image or ways[0],
        "image",
        common([each[1] for each in parts]),
        tuple(each[0] for each in parts),
        image=image,
        line=f"{{image: {image or 'NAME'}, path: {way}}}",
    )


def _read(values: Values, path: Path, name: str) -> tuple[Value | Reference, Pin, str]:
    """(where the version is set, the version, the image's name)."""
    text = values.current(path)
    last = str(path[-1])
    if text is None and _is_mapping(values, path):
        path, last = (*path, "tag"), "tag"
        text = values.current(path)
    tagged = bool(_FLAT.fullmatch(last)) or not _IMAGE.fullmatch(last)
    parts = split_reference(text or "")
    whole = last in _REPOSITORY and parts is not None and bool(parts[1])
    whole = whole or _is_reference(text or "", name)
    if not tagged or whole or _is_in_images(path, text or ""):
        if parts is None and not name:
            raise NotEditable(f"{path_text(path)}: {text!r} is not an image")
        image, pin = parts or (name, NO_PIN)
        file, inside = values.location(path)
        location = Reference(file, inside, image, values.document, list_file=values.list_file(path))
        return location, pin, image
    file, inside = values.location(path)
    digest = _digest_path(values, path)
    digest_file, digest_inside = values.location(digest) if digest else ("", ())
    current = (values.current(digest) or "") if digest else ""
    if current and digest[-1] == BARE_DIGEST:
        current = f"{BARE_DIGEST_OF}{current}"
    lists = values.list_file(path)
    # With a digest in the chart's own values, its templates may not know a tag.
    only = text is None and bool(digest) and bool(text_at(values.layers[0].root, digest))
    value = Value(file, inside, digest_file, digest_inside, current, only, lists, values.document)
    value = replace(value, is_new=text is None and not current)
    return value, value_pin(text or "", current), _repository(values, path)


def _is_reference(text: str, name: str) -> bool:
    """The value is an image, whatever its key is: no tag has a colon. name: of the image, or ""."""
    parts = split_reference(text)
    if parts is None or DIGEST.fullmatch(text):
        return False
    return bool(parts[1].tag) or (parts[0] == name and text != name.rpartition("/")[2])


def _is_mapping(values: Values, path: Path) -> bool:
    layers = values.effective(path)
    nodes = [node_at(each.root, (*each.prefix, *path)) for each in layers]
    return any(node is not None and node.kind == "map" for node in nodes)


def _digest_path(values: Values, path: Path) -> Path:
    """The path of the digest that belongs to a tag; () if the chart has none."""
    last = str(path[-1])
    digest = (*path[:-1], "digest" if last == "tag" else re.sub("[tT]ag$", "Digest", last))
    if digest != path and values.current(digest) is not None:
        return digest
    bare = values.current((*path[:-1], BARE_DIGEST)) if last == "tag" else None
    return (*path[:-1], BARE_DIGEST) if bare is not None and _BARE.fullmatch(bare) else ()


def _repository(values: Values, path: Path) -> str:
    """The image that a tag belongs to, from the neighboring keys."""
    flat = _FLAT.fullmatch(str(path[-1]))
    keys = _flat_names(flat[1]) if flat else _REPOSITORY
    found = [values.current((*path[:-1], key)) for key in keys]
    image = next((each for each in found if each), "")
    registry = None if flat else values.current((*path[:-1], "registry"))
    if registry is not None:
        # Charts that support this key put it before every image's own registry.
        registry = values.current(_EVERY_REGISTRY) or registry
    return f"{registry}/{image}" if registry and image else image


def _flat_names(stem: str) -> tuple[str, ...]:
    """Keys beside `imageTag` that may contain the image's name."""
    ends = ("Repository", "Repo", "Name", "_repository", "_repo", "_name")
    return (stem, *(f"{stem}{each}" for each in ends))


def candidates(node: YamlNode | None, path: Path) -> Iterator[Path]:
    """Paths that look like an image's tag, or like an image with its tag."""
    if node is None:
        return
    node = node.resolved()
    texts = {
        key.value: value.resolved() for key, value in node.pairs if key.kind == "scalar"
    }  # fmt: skip
    scalars = {key for key, value in texts.items() if value.kind == "scalar"}
    named = bool(path) and bool(_IMAGE.fullmatch(str(path[-1])))
    if {"tag", "digest"} & scalars and (
        named or {"repository", "image"} & scalars or _names_image(texts.get("repo"))
    ):
        yield (*path, "tag")
    elif named and "version" in scalars and any(map(_names_image, map(texts.get, _REPOSITORY))):
        yield (*path, "version")
    elif named:
        yield from ((*path, key) for key in _REPOSITORY if _has_version(texts.get(key)))
    for key, value in texts.items():
        flat = _FLAT.fullmatch(key) if key in scalars else None
        if flat and (key.lower().endswith("tag") or scalars & {*_flat_names(flat[1])}):
            yield (*path, key)
        elif key in scalars and _IMAGE.fullmatch(key):
            parts = split_reference(value.value)
            if parts and parts[1] and "tag" not in scalars:
                yield (*path, key)
        elif key in scalars and _is_in_images((*path, key), value.value):
            yield (*path, key)
        elif value.kind != "scalar" and len(path) < DEEPEST:
            yield from candidates(value, (*path, key))
    for index, item in enumerate(node.items):
        yield from candidates(item, (*path, index))


def unnamed_images(values: Values) -> list[str]:
    """Entries of `.promotion.yaml` for values that are images under keys that aren't searched."""
    found = {
        path: text
        for layer in values.layers
        for path, text in _texts(node_at(layer.root, layer.prefix), ())
    }
    images = ((path, split_reference(text), text) for path, text in found.items())
    return [
        f"{{image: {parts[0]}, path: {path_text(path)}}}"
        for path, parts, text in images
        if parts and parts[1].tag and "/" in parts[0] and "//" not in text
    ]


def _texts(node: YamlNode | None, path: Path) -> Iterator[tuple[Path, str]]:
    """The paths of all values that are texts, except in lists."""
    if node is None or len(path) > DEEPEST:
        return
    for key, value in node.resolved().pairs:
        inner = value.resolved()
        if key.kind == inner.kind == "scalar":
            yield (*path, key.value), inner.value
        elif key.kind == "scalar":
            yield from _texts(inner, (*path, key.value))


def lacks_version(key: str, node: YamlNode) -> bool:
    """The value names an image and has no version: charts may support a tag that isn't set."""
    texts = {name.value: each.resolved() for name, each in node.pairs if name.kind == "scalar"}
    named = _IMAGE.fullmatch(key) and any(map(_names_image, map(texts.get, _REPOSITORY)))
    return bool(named) and texts.keys().isdisjoint(("tag", "digest", "version"))


def _is_in_images(path: Path, text: str) -> bool:
    """The value is an image with its version, in a mapping of images or one below it.

    It has a slash, unlike other texts with a colon, such as `localhost:5000`.
    """
    parts = split_reference(text)
    above = (each for each in path[-3:-1] if isinstance(each, str))
    return bool(parts and parts[1] and "/" in parts[0]) and any(map(_IMAGES.fullmatch, above))


def _names_image(node: YamlNode | None) -> bool:
    """The value is an image name without a version, and not the URL of a git repository."""
    if node is None or node.kind != "scalar" or node.value.endswith(".git"):
        return False
    parts = split_reference(node.value)
    return parts is not None and not parts[1] and "//" not in node.value


def _has_version(node: YamlNode | None) -> bool:
    """The value is an image with its version."""
    parts = split_reference(node.value) if node and node.kind == "scalar" else None
    return parts is not None and parts[1] != NO_PIN


def read_file(folder: EnvironmentFolder, name: str, paths: Sequence[Path]) -> Values:
    """The values of a single file, in the document that has the paths. Raises NotEditable."""
    text = folder.text(name)
    if text is None:
        raise NotEditable(f"{folder.path} has no file {name}")
    roots = read_documents(text, f"{folder.path}/{name}")
    places = [
        index
        for index, root in enumerate(roots)
        if all(node_at(root, path) is not None for path in paths)
    ]
    if len(roots) > 1 and len(places) != 1:
        where = " and ".join(map(path_text, paths))
        raise NotEditable(
            f"{folder.path}/{name} has {where} in {len(places)} of {len(roots)} YAML documents",
            next="move the document to its own file, or name the container instead of the path",
        )
    document = places[0] if len(roots) > 1 else 0
    root = roots[document] if roots else None
    return Values((_Layer(name, root),), name, {}, document)
