"""Rules for the images of containers: valid names, and pinned versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.item import containers_of

MOVING = frozenset(
    {"canary", "current", "dev", "develop", "edge", "head", "latest", "main", "master"}
    | {"nightly", "rolling", "snapshot", "stable"}
)
"""Tags and branches that move."""
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?"
_PATH = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:(?:{_HOST})/)?{_PATH}(?:/{_PATH})*(?::\w[\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\$[({]?\w|\{\{|<\w|%\w")


def images(pod: Mapping[str, Any]) -> list[str]:
    """Images of a pod's containers, init containers included."""
    return [each["image"] for each in containers_of(pod) if isinstance(each.get("image"), str)]


def invalid_image(image: str) -> Fault | None:
    """Why the image name is invalid. Source: reference/regexp.go of distribution/reference."""
    if not image or _IMAGE.fullmatch(image):
        return None
    why = ", a placeholder that nothing replaces" if _PLACEHOLDER.search(image) else ""
    return Fault("image-invalid", f"the image {image} is not a valid name{why}", value=image)


def unpinned_image(image: str) -> Fault | None:
    """Why the image can change without a change of its name."""
    if re.search(r"@sha256:[0-9a-f]{64}$", image):
        return None
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        return Fault("image-untagged", f"the image {image} has no tag", value=image)
    if not is_moving(tag):
        return None
    return Fault("image-moving-tag", f"the image {name} has the mutable tag {tag}", value=image)


def is_moving(tag: str) -> bool:
    """True also for `latest-alpine` and `alpine-latest`; false for a version or a commit."""
    words = re.split(r"[._-]", tag.lower())
    return bool(MOVING & set(words)) and not re.search(r"\d", tag)
