"""Rules about the keys of an app, which depend on its form, and about its hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.topology.problems import Loc, Problem, shown

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec
    from k8s_ucp.topology.parts import App

SHIPPED = ("quote", "echo-client")
"""Apps whose manifests come with ucp: `path: ucp:<name>`."""


def find_bad_apps(spec: Spec) -> Iterator[Problem]:
    """Keys of apps that don't go together, and hosts of two apps."""
    taken: dict[str, str] = {}
    for index, app in enumerate(spec.apps):
        at: Loc = ("spec", "apps", index)
        yield from _bad_form(app, at)
        for index, host in enumerate(app.hosts):
            other = taken.setdefault(host, app.name)
            if other != app.name or host in app.hosts[:index]:
                yield Problem((*at, "hosts", index), f"duplicate host '{host}': {other}")


def _bad_form(app: App, at: Loc) -> Iterator[Problem]:
    if not (app.image or app.path or app.repo or app.chart):
        yield Problem(at, f"{shown(at)} requires the key 'image' (or 'path', 'repo' or 'chart')")
    if app.image and not app.tag:
        yield Problem(at, f"{shown(at)} requires the key 'tag'")
    if app.tag and not app.image:
        yield Problem((*at, "tag"), f"{shown(at)}: 'tag' requires 'image'")
    if app.repo and not app.revision:
        yield Problem(
            at, f"{shown(at)} requires the key 'revision': a tag or commit of the repository"
        )
    for key in ("revision", "auth"):
        if getattr(app, key) and not app.repo:
            yield Problem((*at, key), f"{shown(at)}: '{key}' requires 'repo'")
    for key in ("replicas", "port"):
        if app.form != "image" and key in app.model_fields_set:
            yield Problem(
                (*at, key),
                f"{shown(at)}: '{key}' is not allowed with 'path' or 'repo': set it in your "
                "own manifests",
            )
    if app.repo and app.path and app.path.startswith("ucp:"):
        yield Problem((*at, "path"), f"{shown(at)}: '{app.path}' is not in a repository")
    elif app.path and app.path.startswith("ucp:") and app.path[4:] not in SHIPPED:
        known = ", ".join(f"ucp:{each}" for each in SHIPPED)
        yield Problem(
            (*at, "path"), f"{shown(at)}: '{app.path}' is not built into ucp; available: {known}"
        )
    for loc, path in _paths(app, at):
        if {".", ".."} & set(path.split("/")):
            yield Problem(
                loc,
                f"{shown(loc)}: '{path}' must not contain '.' or '..': use a path relative to "
                "the folder of ucp.yaml, such as services/quote",
            )
    yield from _bad_chart(app, at)


def _paths(app: App, at: Loc) -> Iterator[tuple[Loc, str]]:
    if app.path:
        yield (*at, "path"), app.path
    for key in ("values", "overlays"):
        yield from (((*at, key, name), path) for name, path in getattr(app, key).items())


def _bad_chart(app: App, at: Loc) -> Iterator[Problem]:
    """Keys that are not allowed with a Helm chart, or with an image."""
    if app.chart:
        for key in ("image", "path", "repo"):
            if getattr(app, key):
                yield Problem(
                    (*at, key), f"{shown(at)}: '{key}' and 'chart' are mutually exclusive"
                )
        if app.as_ not in (None, "helm"):
            yield Problem((*at, "as"), f"{shown(at)}: a chart is rendered as helm")
    if app.form == "image":
        for key in ("as", "values", "overlays"):
            if getattr(app, "as_" if key == "as" else key):
                yield Problem((*at, key), f"{shown(at)}: '{key}' is not allowed with 'image'")
    if app.hosts and (app.chart or app.as_ == "helm"):
        yield Problem(
            (*at, "hosts"),
            f"{shown(at)}: 'hosts' is not allowed with a chart: set hosts in its values",
        )
