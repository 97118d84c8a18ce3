"""Where the files that people bring lie in the app repository, by the form that they have. Pure.

A kustomization, or manifests that kustomize can hold, is the app's base; what differs between
environments is in our overlays, which take theirs in where they have some. A Helm chart, a plain
directory and jsonnet are copied to the folder of each environment: Argo CD renders it from there,
and an environment keeps its version until something is promoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import find_form, is_kustomization, manifest_files, overlays

if TYPE_CHECKING:
    from k8s_ucp.topology import App
    from k8s_ucp.topology.parts import AppForm

SETTINGS = ".argocd-source.yaml"
"""What Argo CD reads in an app's folder: how to render it. It heeds no address or path there."""
_VALUES = (
    *("values-{0}.yaml", "values-{0}.yml", "values.{0}.yaml", "values_{0}.yaml", "{0}-values.yaml"),
    *("values/{0}.yaml", "values/values-{0}.yaml", "environments/{0}.yaml", "envs/{0}.yaml"),
    *("env/{0}.yaml", "{0}/values.yaml"),
)
"""Where charts have the values of an environment."""


def form_of(app: App, own: Mapping[str, bytes]) -> AppForm:
    """How an app's folder is rendered. Raises UsageError."""
    if not own:
        return "kustomize"
    return find_form(own, app.as_ or ("helm" if app.chart else None), app.overlays).form


def brought_files(
    app: App, own: Mapping[str, bytes], environments: Iterable[str]
) -> dict[str, bytes]:
    """{path in the app repository: content} of what people bring."""
    form = form_of(app, own)
    plain = not is_kustomization(own) and not overlays(own) and not app.overlays
    paths = sorted(own)
    if form == "directory" or (form == "kustomize" and plain and own):
        paths = manifest_files(own)
    if form == "kustomize":
        return {f"apps/{app.name}/base/{path}": own[path] for path in paths}
    return {
        f"apps/{app.name}/overlays/{environment}/{path}": own[path]
        for environment in environments
        for path in paths
    }


def generated_files(app: App, form: AppForm) -> set[str]:
    """Names of what is generated beside them, for other forms than a kustomization."""
    if form == "helm":
        return {SETTINGS, "values-{environment}.yaml"}
    return {SETTINGS, "hosts.yaml"} if app.hosts else {SETTINGS}


def values_file(own: Mapping[str, bytes], environment: str) -> str:
    """Where a chart has the values of an environment; a file of ours where it has none."""
    places = [each.format(environment) for each in _VALUES]
    return next((each for each in places if each in own), places[0])


def values_taken(app: App, own: Mapping[str, bytes], environments: Iterable[str]) -> dict[str, str]:
    """{environment: its values file of a chart}: as ucp.yaml names it, or as it is called."""
    found = {each: app.values.get(each) or values_file(own, each) for each in environments}
    return {each: file for each, file in found.items() if each in app.values or file in own}


def base_of(app: App, own: Mapping[str, bytes], environment: str) -> str:
    """The folder of the base that an environment's overlay takes in. Raises UsageError."""
    named = app.overlays.get(environment)
    if named is not None:
        if not is_kustomization(own, named):
            raise UsageError(
                f"the app {app.name} has no kustomization in {named}, its overlay for {environment}"
            )
        return named
    there = overlays(own)
    if environment in there:
        return f"overlays/{environment}"
    folders = {each: f"overlays/{each}" for each in there} | dict(app.overlays)
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
