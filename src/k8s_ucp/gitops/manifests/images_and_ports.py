"""Reads images and ports from the user's own manifests. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from k8s_ucp.gitops.manifests.forms import Files, manifest_files, readable
from k8s_ucp.gitops.manifests.yaml_text import documents, maps, part

DEFAULT_PORT = 80
SHIPPED = "ucp:"
"""Prefix of the names of manifests that ship with ucp."""
_IMAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:/-]*")
"""A name that kustomize matches literally, since it treats image names as patterns."""
_TAGGED = re.compile(rb"^( *(?:- )?image: [^\s:@]+):[^\s:@]+$", re.MULTILINE)


def without_tags(content: bytes) -> bytes:
    """Remove tags from a manifest that ships with ucp: overlays set them."""
    return _TAGGED.sub(rb"\1", content)


def images_in(files: Files) -> list[tuple[str, str]]:
    """(image, version) of all containers, filtered as in `one_version`.

    Raises UsageError for invalid YAML.
    """
    found: dict[str, set[str]] = {}
    for path in manifest_files(files):
        for name, version in _images_in_file(files[path], path):
            found.setdefault(name, set()).add(version)
    return one_version(found)


@functools.lru_cache(maxsize=2048)
def _images_in_file(data: bytes, path: str) -> tuple[tuple[str, str], ...]:
    """Cached, because files of CRDs are large, and each environment has the same."""
    if not may_have_containers(data):
        return ()
    return tuple(split_image(each) for each in images(documents(data, path)))


def may_have_containers(data: bytes) -> bool:
    """Whether a file can have images of containers; parsing large files takes long."""
    return (b"image" in data and b"ontainers" in data) or b"\0" in data[:4]


def one_version(found: Mapping[str, Set[str]]) -> list[tuple[str, str]]:
    """(image, version) of images with a single version; "" if none is set. Skips invalid names.

    An image without a version can be promoted; a placeholder instead of a name can't.
    """
    given = {name: each - {""} for name, each in found.items() if _IMAGE.fullmatch(name)}
    return sorted((name, "".join(each)) for name, each in given.items() if len(each) < 2)


def service_port(name: str, files: Files) -> int:
    """The number of a Service's port `http`, else of its first port; 80 if it has none.

    Gateway API routes require a number where an Ingress accepts the name.
    """
    for path in manifest_files(readable(files)):
        for item in documents(files[path], path):
            if not isinstance(item, dict) or item.get("kind") != "Service":
                continue
            if part(item, "metadata").get("name") != name:
                continue
            ports = maps(part(item, "spec"), "ports")
            named = [each for each in ports if each.get("name") == "http"]
            for each in (*named, *ports):
                if isinstance(each.get("port"), int):
                    return int(each["port"])
    return DEFAULT_PORT


def split_image(image: str) -> tuple[str, str]:
    """Name and version, which is `tag`, `@digest`, `tag@digest` or ""."""
    rest, at, digest = image.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        name, tag = rest, ""
    return name, f"{tag}{at}{digest}"


def images(value: Any) -> Iterator[str]:
    """Images of all containers in a value."""
    if isinstance(value, dict):
        for key in ("containers", "initContainers"):
            for each in maps(value, key):
                if isinstance(each.get("image"), str):
                    yield each["image"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from images(each)
