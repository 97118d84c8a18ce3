"""Prints what people should know of an app before they add it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.adding.items import parsed_item
from k8s_ucp.cli.editing.preview.app_objects import has_own_manifests
from k8s_ucp.cli.editing.preview.permissions import uncreated_namespaces
from k8s_ucp.cli.editing.preview.rendering import edited
from k8s_ucp.errors import some_of

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.adding.flags import AppFlags
    from k8s_ucp.cli.editing.preview.app_objects import AppObjects
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.topology import App, Topology

_REFUSED = frozenset(
    f"{each}.argoproj.io" for each in ("Application", "ApplicationSet", "AppProject")
)
"""Kinds that no app may create; `find_forbidden` reports them."""
_OF_ROLLOUTS = frozenset(
    f"{each}.argoproj.io"
    for each in (
        "AnalysisRun",
        "AnalysisTemplate",
        "ClusterAnalysisTemplate",
        "Experiment",
        "Rollout",
    )
)
"""Kinds of Argo Rollouts; Argo Workflows and Argo Events have others in the same group."""


def report_form(call: Invocation, edit: Edit, name: str) -> None:
    """Print the form of an app, if people provide its manifests. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import find_form, left_out
    from k8s_ucp.gitops.render.app_manifests import all_files, read_app
    from k8s_ucp.gitops.render.user_manifests import is_plain, values_taken

    _, topology = edited(call, edit)
    app = next(each for each in topology.spec.apps if each.name == name)
    if not has_own_manifests(app):
        return
    files = read_app(app, call.workspace.root, fetcher_of(call, topology))
    found = find_form(files, app.as_ or ("helm" if app.chart else None), app.overlays)
    call.console.say(f"{name}: {found.words}")
    if found.form in ("directory", "kustomize") and is_plain(app, files):
        for words in left_out(all_files(app, call.workspace.root, fetcher_of(call, topology))):
            call.console.say(f"{name}: {words}")
    if found.form == "helm":
        environments = [each.name for each in topology.spec.environments]
        if taken := values_taken(app, files, environments):
            listed = ", ".join(f"{file} for {each}" for each, file in taken.items())
            others = [each for each in environments if each not in taken]
            left = f"; none for {', '.join(others)}" if others else ""
            call.console.say(f"{name}: values files of environments: {listed}{left}")


def print_settings_left_out(
    call: Invocation, topology: Topology, flags: AppFlags, item: Mapping[str, Any]
) -> None:
    """Print which settings of Argo CD are in the source of a new app. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.build_charts import SETTINGS
    from k8s_ucp.gitops.manifests.reachable import files_called
    from k8s_ucp.gitops.render.app_manifests import folder_tree_of, repository_tree_of

    if flags.repo and not flags.chart:
        app = parsed_item(item)
        tree = repository_tree_of(app, fetcher_of(call, topology))
        found = files_called(tree, app.path or "", SETTINGS)
    else:
        # Its copy beside ucp.yaml lacks hidden files.
        source = Path(flags.path or "").expanduser()
        root = source if source.is_dir() else call.workspace.root / source
        found = files_called(folder_tree_of(root), "", SETTINGS) if flags.path else []
    if found:
        call.console.say(
            f"{flags.name}: left out {some_of(found)}, settings of Argo CD: write what it sets to "
            "the values or the kustomization"
        )


def print_foreign_kinds(
    call: Invocation, topology: Topology, apps: Mapping[str, AppObjects]
) -> None:
    """Print the kinds of custom resources that new apps need without an app having the CRD."""
    from k8s_ucp.gitops.check.kinds import declared_kinds

    brought = {kind for each in apps.values() for kind in declared_kinds(each.objects)} | _REFUSED
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, app_objects in apps.items():
        kinds = [each for each in app_objects.foreign if each not in brought]
        if topology.spec.addons.argo_rollouts:
            kinds = [each for each in kinds if each not in _OF_ROLLOUTS]
        alike.setdefault(tuple(kinds), []).append(name)
    for needed, names in alike.items():
        if not needed:
            continue
        none = "it contains none of them" if len(apps) == 1 else "none of the apps contains them"
        words = f"{', '.join(names)}: the clusters need the CRDs of {', '.join(needed)}; {none}"
        if not _OF_ROLLOUTS.isdisjoint(needed):
            words += "; `addons: {argo-rollouts: true}` in ucp.yaml installs Argo Rollouts"
        if any(each.startswith("HelmRelease.") for each in needed):
            words += "; `ucp app import` with the folder adds the charts of HelmReleases"
        call.console.say(words)


def print_notes_of(call: Invocation, topology: Topology, app: App, app_objects: AppObjects) -> None:
    """Print what a new app lacks: objects, namespaces, and images that can be promoted."""
    if app_objects.is_chart and not app_objects.objects:
        call.console.say(
            f"{app.name}: its chart renders no objects; if it needs values, run the command again "
            "with --values FILE"
        )
    if app_objects.changing:
        call.console.say(
            f"{app.name}: each time that Argo CD renders its chart, "
            f"{some_of(app_objects.changing)} is generated anew: set the chart's values for it "
            "(passwords, certificates)"
        )
    homes = {each.home for each in topology.spec.apps}
    if missing := uncreated_namespaces(app, app_objects, homes):
        noun = "namespace" if len(missing) == 1 else "namespaces"
        call.console.say(
            f"{app.name}: neither it nor Argo CD creates the {noun} {', '.join(missing)}: add a "
            f"Namespace to its manifests, or have its objects go to {app.home}; without it they "
            "can't be deployed"
        )
    _print_unchangeable_images(call, app.name, app_objects)


def _print_unchangeable_images(call: Invocation, name: str, app_objects: AppObjects) -> None:
    """Print which images of a new app promotions can't change, and why."""
    for each in app_objects.unset:
        call.console.say(f"{name}: {each}")
    by_environments: dict[str, list[str]] = {}
    for image, environments in app_objects.unlisted.items():
        by_environments.setdefault(", ".join(environments), []).append(image)
    for names, images in by_environments.items():
        call.console.say(
            f"{name}: `ucp promote` can't change {', '.join(images)} in {names}, whose version a "
            "patch or a remote base sets: set it by `images` of the overlay"
        )
