"""The kinds of locations of a version, and how each is read and written. A closed set.

A target can have several locations, which hold the same version and change together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from k8s_ucp.gitops.manifests.image_edit import DIGEST, NO_PIN, TAG, Pin, set_pin
from k8s_ucp.gitops.manifests.value_edit import (
    DocumentPath,
    Path,
    path_text,
    set_value,
    set_values,
    text_at,
    with_list,
)
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_documents

Texts = Callable[[str], str]
"""Returns the text of a file of the environment's folder."""


@dataclass(frozen=True)
class KustomizeImage:
    """An entry of `images` in a kustomization."""

    file: str
    name: str


@dataclass(frozen=True)
class Value:
    """A tag in a values file, with the digest that overrides it if the chart has one."""

    file: str
    path: Path
    digest_file: str = ""
    digest_path: Path = ()
    digest: str = ""
    """The effective digest, wherever it is set."""
    only_digest: bool = False
    """The chart sets a digest and no tag, so it may not support one."""
    list_file: str = ""
    """The file whose list has the value, if `file` doesn't have that list yet."""
    document: int = 0
    """Position of the document with the tag and the digest."""
    is_new: bool = False
    """Neither the chart nor the environment sets it: its path may be wrong."""


@dataclass(frozen=True)
class Reference:
    """An image as one string, `name:tag`, in a values file or a manifest."""

    file: str
    path: Path
    name: str
    document: int = 0
    list_file: str = ""
    """As for Value."""


@dataclass(frozen=True)
class Version:
    """The version of a chart, as one value in a file."""

    file: str
    path: Path


@dataclass(frozen=True)
class ChartFiles:
    """A chart that was copied to the environment's folder: its files change with its version."""

    file: str
    repo: str = ""
    """Where its versions are fetched from; "" if only ucp.yaml specifies that."""


VersionLocation = KustomizeImage | Value | Reference | Version | ChartFiles


_MOST_PLACES = 10
"""Maximum number of places that a message names; an image can be in hundreds."""


@dataclass(frozen=True)
class Target:
    """What a promotion can change: one image or chart of an environment.

    name: its key in marks and messages, unique in its environment. image: its name in pods, "" if
    unknown. line: its entry in `.promotion.yaml`.
    """

    name: str
    kind: Literal["image", "chart"]
    pin: Pin
    locations: tuple[VersionLocation, ...]
    image: str = ""
    line: str = ""

    @property
    def location_text(self) -> str:
        """Where the version is; "" for a kustomization's images, which is usual."""
        places = [*dict.fromkeys(filter(None, map(_described, self.locations)))]
        more = len(places) - _MOST_PLACES
        return ", ".join(places[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")

    @property
    def short(self) -> str:
        """The name without the prefix of charts."""
        return self.name.removeprefix(CHART)

    @property
    def has_default(self) -> bool:
        """An empty version is valid: the chart then uses its default, such as its appVersion."""
        return all(isinstance(location, Value) for location in self.locations)

    @property
    def can_be_untagged(self) -> bool:
        """Its version can be removed again: an image then has the tag of the base, or none."""
        if len(self.locations) == 1 and isinstance(self.locations[0], KustomizeImage | Reference):
            return True
        # Several places without a common version read as empty, too: it can't be restored.
        return self.has_default

    def way(self) -> str:
        """The path of a value, which identifies it if the image has another name."""
        paths = [
            path_text(location.path)
            for location in self.locations
            if isinstance(location, Value | Version)
        ]
        return " ".join(paths) if len(paths) == len(self.locations) else ""


BARE_DIGEST = "sha"
"""Key of a digest without its algorithm, in charts such as Grafana's."""
BARE_DIGEST_OF = "sha256:"
CHART = "chart "
"""Prefix of a chart's name, since an image may have the same name."""


_HUB = re.compile(r"^(?:(?:index\.)?docker\.io/)?(?:library/)?")


def on_hub(image: str) -> str:
    """An image's name without Docker Hub's optional prefixes: docker.io/ and library/."""
    return _HUB.sub("", image)


def split_reference(text: str) -> tuple[str, Pin] | None:
    """(name, version) of an image reference; None if it isn't a valid one."""
    rest, _, digest = text.partition("@")
    folder, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    name = f"{folder}{slash}{last}"
    if not _NAME.fullmatch(name) or (digest and not DIGEST.fullmatch(digest)):
        return None
    if colon and not TAG.fullmatch(tag):
        return None
    return name, Pin(tag, digest)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")


def write(
    locations: Sequence[VersionLocation], text: Texts, pin: Pin, folder: str
) -> dict[str, str]:
    """New texts of the files that change if these locations get the version. Raises NotEditable."""
    texts: dict[str, str] = {}

    def current(file: str) -> str:
        return texts[file] if file in texts else text(file)

    references: dict[str, dict[DocumentPath, str]] = {}
    for each in locations:
        if isinstance(each, Reference) and not each.list_file:
            place = each.document, each.path
            references.setdefault(each.file, {})[place] = _image_text(each, pin)
        else:
            texts |= _write(each, current, pin, folder)
    for file, values in references.items():
        texts[file] = set_values(current(file), values, f"{folder}/{file}")
    return texts


def _image_text(location: Reference, pin: Pin) -> str:
    tag = f":{pin.tag}" if pin.tag else ""
    return f"{location.name}{tag}" + (f"@{pin.digest}" if pin.digest else "")


def _write(location: VersionLocation, text: Texts, pin: Pin, folder: str) -> dict[str, str]:
    where = f"{folder}/{location.file}"
    if isinstance(location, KustomizeImage):
        return {location.file: set_pin(text(location.file), location.name, pin, where)}
    if isinstance(location, Reference):
        value = _image_text(location, pin)
        before = _with_list(text(location.file), location.path, location, text, folder)
        return {location.file: set_value(before, location.path, value, where, location.document)}
    if isinstance(location, Version):
        return {location.file: set_value(text(location.file), location.path, pin.tag, where)}
    if isinstance(location, ChartFiles):
        # Replacing the chart's files also changes the version.
        return {}
    return _write_value(location, text, pin, folder)


def _with_list(
    before: str, path: Path, location: Value | Reference, text: Texts, folder: str
) -> str:
    """A file's text, with the list that the value at a path is in."""
    if not location.list_file:
        return before
    source = f"{folder}/{location.list_file}"
    return with_list(before, path, f"{folder}/{location.file}", text(location.list_file), source)


def _write_value(location: Value, text: Texts, pin: Pin, folder: str) -> dict[str, str]:
    texts: dict[str, str] = {}

    def put(file: str, path: Path, value: str) -> None:
        where = f"{folder}/{file}"
        before = texts.get(file, text(file))
        roots = read_documents(before, where)
        if text_at(roots[location.document] if roots else None, path) != value:
            before = _with_list(before, path, location, text, folder)
            texts[file] = set_value(before, path, value, where, location.document)

    if pin.digest and not location.digest_path:
        raise NotEditable(
            f"{folder}/{location.file} has no digest beside {path_text(location.path)}",
            next="promote a tag, or add the key of the digest to the values of the chart",
        )
    if location.only_digest and not pin.digest:
        raise NotEditable(
            f"the chart in {folder} sets {path_text(location.digest_path)} and no tag, which it "
            "may not support",
            next="promote a digest (--tag TAG@sha256:… or --digest), or set the tag in the values",
        )
    if pin.tag or not pin.digest:
        put(location.file, location.path, pin.tag)
    if location.digest != pin.digest:
        bare = location.digest_path[-1] == BARE_DIGEST
        digest = pin.digest.removeprefix(BARE_DIGEST_OF) if bare else pin.digest
        put(location.digest_file, location.digest_path, digest)
    return texts


def value_pin(tag: str, digest: str) -> Pin:
    """The version that a chart runs with these values: the digest, if there is one."""
    return Pin(digest=digest) if digest else Pin(tag=tag) if tag else NO_PIN


def common(pins: Sequence[Pin]) -> Pin:
    """The version that several locations have in common; empty if they differ."""
    return pins[0] if pins and all(pin == pins[0] for pin in pins) else NO_PIN


def _described(location: VersionLocation) -> str:
    if isinstance(location, KustomizeImage):
        return ""
    if isinstance(location, ChartFiles):
        return f"version in {location.file}"
    new = " (new: it was set nowhere)" if isinstance(location, Value) and location.is_new else ""
    return f"{path_text(location.path)} in {location.file}{new}"
