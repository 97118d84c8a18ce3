"""Parses versions as users type them: tags, digests and versions of charts."""

from __future__ import annotations

import re

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import DIGEST, TAG, Pin
from k8s_ucp.gitops.promotion.targets.kinds import split_reference

_TAG_ADVICE = (
    "use at most 128 letters, digits, `_`, `.` and `-`, with a letter, a digit or `_` first"
)
_CHART_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def parse_version(text: str) -> Pin:
    """Parse a tag, a digest or both (`1.4.0@sha256:…`). Raises UsageError."""
    return Pin(digest=text) if DIGEST.fullmatch(text) else parse_tag(text)


def parse_tag(text: str) -> Pin:
    """Parse a tag, optionally with its digest. Raises UsageError."""
    tag, at, digest = text.partition("@")
    if at and TAG.fullmatch(tag):
        return Pin(tag, parse_digest(digest).digest)
    parts = split_reference(text)
    only = str(parts[1]) if parts else ""
    advice = f"leave out the image's name: {only}" if only else _TAG_ADVICE
    return Pin(tag=_valid(text, TAG, "tag", advice))


def parse_digest(text: str) -> Pin:
    """Parse a digest. Raises UsageError."""
    return Pin(digest=_valid(text, DIGEST, "digest", "use sha256: and 64 hexadecimal digits"))


def parse_chart_version(text: str) -> Pin:
    """Parse an exact chart version. Raises UsageError."""
    advice = "use an exact one, such as 1.4.0"
    return Pin(tag=_valid(text, _CHART_VERSION, "chart version", advice))


def _valid(text: str, pattern: re.Pattern[str], what: str, advice: str) -> str:
    if not pattern.fullmatch(text):
        raise UsageError(f"{text[:200]!r} is not a valid {what}", next=advice)
    return text
