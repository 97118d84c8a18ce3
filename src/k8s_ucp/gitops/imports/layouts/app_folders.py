"""Which app and environment a folder is of, by its path. Pure.

`<app>/overlays/<environment>`, `overlays/<environment>/<app>`, `environments/<environment>/<app>`
and the like follow one pattern: the segments before and after the environment's are the app.
"""

from __future__ import annotations

from collections.abc import Collection

from k8s_ucp.gitops.imports.findings import PARENTS, named_by


def app_and_environment(folder: str, environments: Collection[str]) -> tuple[str, str | None]:
    """(folder of the app, environment) of a folder; the environment of a base is "base"."""
    segments = [each for each in folder.split("/") if each]
    for at, each in enumerate(segments):
        after = segments[at + 1 :]
        if each in PARENTS and after:
            return "/".join([*segments[:at], *after[1:]]), after[0]
        if each == "base" or each in environments:
            return "/".join([*segments[:at], *after]), each
    return folder, None


def name_of(folder: str, title: str) -> str:
    return named_by(folder, title)[1]
