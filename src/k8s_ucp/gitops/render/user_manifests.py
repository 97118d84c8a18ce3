"""Paths in the app repository for the user's own files, depending on their form. Pure.

A kustomization, or manifests that kustomize supports, becomes the app's base; differences between
environments are in generated overlays, which include the user's overlays if there are any. A Helm
chart, a plain directory and jsonnet are copied to the folder of each environment: Argo CD renders
them from there, and an environment keeps its version until something is promoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import (
    KUSTOMIZATIONS,
    find_form,
    is_kustomization,
    manifest_files,
    overlays,
)

if TYPE_CHECKING:
    from k8s_ucp.topology import App
    from k8s_ucp.topology.parts import AppForm

SETTINGS = ".argocd-source.yaml"
"""Argo CD reads from this file in an app's folder how to render it, but no URL or path."""
_VALUES = (
    *("values-{0}.yaml", "values-{0}.yml", "values.{0}.yaml", "values_{0}.yaml", "{0}-values.yaml"),
    *("values/{0}.yaml", "values/values-{0}.yaml", "environments/{0}.yaml", "envs/{0}.yaml"),
    *("env/{0}.yaml", "{0}/values.yaml"),
)
"""Usual paths of an environment's values file in a chart."""


def form_of(app: App, own: Mapping[str, bytes]) -> AppForm:
    """The form in which an app's folder is rendered. Raises UsageError."""
    if not own:
        return "kustomize"
    return find_form(own, app.as_ or ("helm" if app.chart else None), app.overlays).form


def user_files(app: App, own: Mapping[str, bytes], environments: Iterable[str]) -> dict[str, bytes]:
    """{path in the app repository: content} of the user's own files."""
    form = form_of(app, own)
    paths = sorted(own)
    if form == "directory" or (form == "kustomize" and own and is_plain(app, own)):
        paths = manifest_files(own)
    if form == "kustomize":
        return {f"apps/{app.name}/base/{path}": own[path] for path in paths}
    # Argo CD renders the folder by SETTINGS, but the check and promotions by what is in it.
    return {
        f"apps/{app.name}/overlays/{environment}/{path}": own[path]
        for environment in environments
        for path in paths
        if path not in KUSTOMIZATIONS
    }


def is_plain(app: App, own: Mapping[str, bytes]) -> bool:
    """The app's folder has no kustomization."""
    return not is_kustomization(own) and not overlays(own) and not app.overlays


def generated_files(app: App, form: AppForm) -> set[str]:
    """Names of the files that are generated beside them, for forms other than a kustomization."""
    if form == "helm":
        return {SETTINGS, "values-{environment}.yaml"}
    return {SETTINGS, "hosts.yaml"} if app.hosts else {SETTINGS}


def values_file(own: Mapping[str, bytes], environment: str) -> str:
    """Path of an environment's values file in a chart; if it has none, the path to generate."""
    paths = [each.format(environment) for each in _VALUES]
    return next((each for each in paths if each in own), paths[0])


def values_taken(app: App, own: Mapping[str, bytes], environments: Iterable[str]) -> dict[str, str]:
    """{environment: values file in the chart}, as set in ucp.yaml or found at a usual path."""
    found = {each: app.values.get(each) or values_file(own, each) for each in environments}
    return {each: file for each, file in found.items() if each in app.values or file in own}


def base_of(app: App, own: Mapping[str, bytes], environment: str) -> str:
    """The folder in the base that an environment's overlay includes. Raises UsageError."""
    named = app.overlays.get(environment)
    if named is not None:
        if not is_kustomization(own, named):
            raise UsageError(
                f"the app {app.name} has no kustomization in {named}, its overlay for {environment}"
            )
        return named
    own_overlays = overlays(own)
    if environment in own_overlays:
        return f"overlays/{environment}"
    folders = {each: f"overlays/{each}" for each in own_overlays} | dict(app.overlays)
    if not folders or is_kustomization(own):
        return ""
    if is_kustomization(own, "base"):
        return "base"
    folder = folders[min(folders)]
    raise UsageError(
        f"the app {app.name} has no overlay for {environment}, only for "
        f"{', '.join(sorted(folders))}",
        next=f"select its overlay: --overlay {environment}={folder} of ucp app add, --overlay "
        f"{app.name}={folder} of ucp env add, or `overlays` of the app in ucp.yaml",
    )
