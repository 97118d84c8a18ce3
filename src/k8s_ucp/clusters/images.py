"""Container images: which ones manifests reference, and their names in a mirror."""

from __future__ import annotations

import re

_NAMED = re.compile(r'^([ \t]*(?:- )?image: *)(["\']?)([^\s"\']+)\2[ \t]*$', re.M)


def named_in(text: str) -> list[str]:
    """Sorted images that manifests reference, without duplicates."""
    return sorted({match[3] for match in _NAMED.finditer(text)})


def mirrored(image: str, mirror: str | None) -> str:
    """The image's name in a mirror: the registry is replaced, the path stays.

    mirror: `host[:port][/path]`; None leaves the name unchanged.
    """
    if not mirror:
        return image
    first, slash, rest = image.partition("/")
    if not slash:
        return f"{mirror}/library/{image}"
    if "." in first or ":" in first or first == "localhost":
        return f"{mirror}/{rest}"
    return f"{mirror}/{image}"


def from_mirror(text: str, mirror: str | None) -> str:
    """Replace every image in manifests by its name in the mirror."""
    if not mirror:
        return text
    return _NAMED.sub(lambda found: f"{found[1]}{mirrored(found[3], mirror)}", text)
