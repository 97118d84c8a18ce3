"""What can be read from manifests of the user's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from k8s_ucp.gitops.manifests.forms import Files, manifest_files
from k8s_ucp.gitops.manifests.yaml_text import documents

DEFAULT_PORT = 80
SHIPPED = "ucp:"
"""In front of the names of manifests that come with ucp."""
_IMAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:/-]*")
"""A name that kustomize finds again, which takes it for a pattern."""
_TAGGED = re.compile(rb"^( *(?:- )?image: [^\s:@]+):[^\s:@]+$", re.MULTILINE)


def without_tags(content: bytes) -> bytes:
    """A manifest of ours for a base: tags are the overlays'."""
    return _TAGGED.sub(rb"\1", content)


def images_in(files: Files) -> list[tuple[str, str]]:
    """(image, version) of all containers, as `one_version` has them.

    Raises UsageError for what is no YAML.
    """
    found: dict[str, set[str]] = {}
    for path in manifest_files(files):
        for image in images(documents(files[path], path)):
            name, version = split_image(image)
            found.setdefault(name, set()).add(version)
    return one_version(found)


def one_version(found: Mapping[str, Set[str]]) -> list[tuple[str, str]]:
    """(image, version) of those with one version, "" where none is given; not what is no name.

    An image without a version can be promoted, too; a placeholder for one can't.
    """
    given = {name: each - {""} for name, each in found.items() if _IMAGE.fullmatch(name)}
    return sorted((name, "".join(each)) for name, each in given.items() if len(each) < 2)


def service_port(name: str, files: Files) -> int:
    """The number of the port `http` of a Service, else of its first port; 80 without any.

    Routes of the Gateway API want a number where an Ingress takes the name.
    """
    for path in manifest_files(files):
        for item in documents(files[path], path):
            if not isinstance(item, dict) or item.get("kind") != "Service":
                continue
            if (item.get("metadata") or {}).get("name") != name:
                continue
            ports = [each for each in (item.get("spec") or {}).get("ports") or () if each]
            named = [each for each in ports if each.get("name") == "http"]
            for each in (*named, *ports):
                if isinstance(each.get("port"), int):
                    return int(each["port"])
    return DEFAULT_PORT


def split_image(image: str) -> tuple[str, str]:
    """Name and version: `tag`, `@digest`, `tag@digest`, or nothing."""
    rest, at, digest = image.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        name, tag = rest, ""
    return name, f"{tag}{at}{digest}"


def images(value: Any) -> Iterator[str]:
    """Of all containers in a value."""
    if isinstance(value, dict):
        for key in ("containers", "initContainers"):
            for each in value.get(key) or ():
                if isinstance(each, dict) and isinstance(each.get("image"), str):
                    yield each["image"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from images(each)
