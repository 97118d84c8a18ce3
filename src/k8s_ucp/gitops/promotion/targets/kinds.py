"""The kinds of places that hold a version, how each is read and written. A closed set.

Several places may make one target: they hold the same version and change together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from k8s_ucp.gitops.manifests.image_edit import DIGEST, NO_PIN, TAG, Pin, set_pin
from k8s_ucp.gitops.manifests.value_edit import Path, path_text, set_value, text_at
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_documents

Texts = Callable[[str], str]
"""The text of a file of the environment's folder."""


@dataclass(frozen=True)
class KustomizeImage:
    """An entry of `images` in a kustomization."""

    file: str
    name: str


@dataclass(frozen=True)
class Value:
    """A tag in a values file, and the digest that goes before it, where the chart has one."""

    file: str
    path: Path
    digest_file: str = ""
    digest_path: Path = ()
    digest: str = ""
    """The one that counts now, wherever it is set."""


@dataclass(frozen=True)
class Reference:
    """An image as one string, `name:tag`, in a values file or a manifest."""

    file: str
    path: Path
    name: str
    document: int = 0


@dataclass(frozen=True)
class Version:
    """The version of a chart, as one line of a file."""

    file: str
    path: Path


@dataclass(frozen=True)
class ChartFiles:
    """A chart that was copied to the environment's folder: its files change with its version."""

    file: str
    repo: str = ""
    """Where its versions are fetched from; "" where only the topology says so."""


Spot = KustomizeImage | Value | Reference | Version | ChartFiles


@dataclass(frozen=True)
class Target:
    """What a promotion can change: one image or chart of an environment.

    name: by which it is remembered and told; unique in its environment. image: how pods call it,
    "" where that isn't known. line: how `.promotion.yaml` names it.
    """

    name: str
    kind: Literal["image", "chart"]
    pin: Pin
    spots: tuple[Spot, ...]
    image: str = ""
    line: str = ""

    @property
    def places(self) -> str:
        """Where it stands, in words; "" in a kustomization's images, where it is expected."""
        return ", ".join(dict.fromkeys(each for spot in self.spots if (each := _place(spot))))

    @property
    def short(self) -> str:
        """The name without what says the kind."""
        return self.name.removeprefix(CHART)

    @property
    def has_default(self) -> bool:
        """An empty version is one too: the chart then takes its default, such as its appVersion."""
        return all(isinstance(spot, Value) for spot in self.spots)

    def way(self) -> str:
        """The path of a value, by which it is found where the image has another name."""
        paths = [path_text(spot.path) for spot in self.spots if isinstance(spot, Value | Version)]
        return " ".join(paths) if len(paths) == len(self.spots) else ""


CHART = "chart "
"""Before the name of a chart: an image may have the same one."""


def split_reference(text: str) -> tuple[str, Pin] | None:
    """(name, version) of an image's reference; None for what is none."""
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


def write(spot: Spot, text: Texts, pin: Pin, folder: str) -> dict[str, str]:
    """New texts of the files that differ once that place holds `pin`. Raises NotEditable."""
    where = f"{folder}/{spot.file}"
    if isinstance(spot, KustomizeImage):
        return {spot.file: set_pin(text(spot.file), spot.name, pin, where)}
    if isinstance(spot, Reference):
        value = spot.name + (f":{pin.tag}" if pin.tag else "")
        value += f"@{pin.digest}" if pin.digest else ""
        new = set_value(text(spot.file), spot.path, value, where, spot.document)
        return {spot.file: new}
    if isinstance(spot, Version):
        return {spot.file: set_value(text(spot.file), spot.path, pin.tag, where)}
    if isinstance(spot, ChartFiles):
        # Whoever exchanges the files has written the version with them.
        return {}
    return _write_value(spot, text, pin, folder)


def _write_value(spot: Value, text: Texts, pin: Pin, folder: str) -> dict[str, str]:
    texts: dict[str, str] = {}

    def put(file: str, path: Path, value: str) -> None:
        where = f"{folder}/{file}"
        before = texts.get(file, text(file))
        roots = read_documents(before, where)
        if text_at(roots[0] if roots else None, path) != value:
            texts[file] = set_value(before, path, value, where)

    if pin.digest and not spot.digest_path:
        raise NotEditable(
            f"{folder}/{spot.file} has no digest beside {path_text(spot.path)}",
            next="promote a tag, or add the key of the digest to the values of the chart",
        )
    if pin.tag or not pin.digest:
        put(spot.file, spot.path, pin.tag)
    if spot.digest != pin.digest:
        put(spot.digest_file, spot.digest_path, pin.digest)
    return texts


def value_pin(tag: str, digest: str) -> Pin:
    """What a chart runs by its values: the digest, where there is one."""
    return Pin(digest=digest) if digest else Pin(tag=tag) if tag else NO_PIN


def common(pins: Sequence[Pin]) -> Pin:
    """The version that several places hold; none where they differ."""
    return pins[0] if pins and all(pin == pins[0] for pin in pins) else NO_PIN


def _place(spot: Spot) -> str:
    if isinstance(spot, KustomizeImage):
        return ""
    if isinstance(spot, ChartFiles):
        return f"version in {spot.file}"
    return f"{path_text(spot.path)} in {spot.file}"
