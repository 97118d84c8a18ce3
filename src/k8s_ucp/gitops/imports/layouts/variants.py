"""Tells overlays of environments from variants of an app, such as `overlays/with-gpu`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from shlex import quote

from k8s_ucp.gitops.imports.findings import DEFAULT, NAMES, in_text

_OF_ANYTHING = frozenset(["overlays", "variants"])
"""Folders whose subfolders may be variants; below `environments` and the like, all are meant."""


def variants_among(overlays: Mapping[str, str], named: Collection[str]) -> list[str]:
    """Names of overlays that are variants of environments, not environments themselves.

    overlays: {name: its folder}. named: environments that the user named. `production-like` beside
    `production` is a variant of it; `prod-eu` and `prod-us` alone are environments.
    """
    known = {each for each in overlays if each in NAMES or each in named}
    return sorted(
        name
        for name, folder in overlays.items()
        if known
        and name not in (*known, DEFAULT)
        and _OF_ANYTHING & {*folder.split("/")}
        and (in_text(name, NAMES) is None or in_text(name, known) is not None)
    )


def note_on(variants: Collection[str]) -> str:
    first, listed = min(variants), ", ".join(sorted(variants))
    word = "overlays" if len(variants) > 1 else "overlay"
    return f"the {word} {listed} of no environment: left out (--map {quote(first)}=ENV uses one)"
