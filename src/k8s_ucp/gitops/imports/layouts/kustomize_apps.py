"""Apps of kustomizations: a base, and an overlay for each environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from k8s_ucp.errors import some_of
from k8s_ucp.gitops.imports.beside_applications import (
    declares_applications,
    has_projects,
    not_added,
    objects_of_kustomizations,
    projects_alone,
)
from k8s_ucp.gitops.imports.findings import DEFAULT, DiscoveredApp, NotImportable, RefusedApp
from k8s_ucp.gitops.imports.layouts.app_folders import app_and_environment, name_of
from k8s_ucp.gitops.imports.layouts.variants import note_on, variants_among
from k8s_ucp.gitops.imports.templates import refuse_templates
from k8s_ucp.gitops.imports.trees import RepositoryTree, declares_flux
from k8s_ucp.gitops.manifests.sources import entries

_PLAIN = frozenset(["apiVersion", "kind", "resources", "bases", "metadata"])
"""Keys of a kustomization that change nothing."""
_CONTENT = frozenset(
    [
        *("resources", "bases", "components", "helmCharts"),
        *("generators", "configMapGenerator", "secretGenerator"),
    ]
)
"""Keys that add objects to a kustomization."""
_FLUX = re.compile(r"(?:^|/)gotk-components\.ya?ml$")
"""The file of Flux itself, which `flux bootstrap` commits."""
_BUNDLE = re.compile(r"\.clusterserviceversion\.ya?ml$")
"""What Operator SDK fills for a bundle of OLM, from config/default and samples beside it."""


@dataclass
class _Group:
    """The folders of one app."""

    base: str | None = None
    whole: str | None = None
    """The folder that isn't of an environment and no base; it may include the base."""
    overlays: dict[str, str] = field(default_factory=dict)


def find_kustomizations(
    tree: RepositoryTree, title: str, environments: Collection[str], named: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    bundles = _bundles(tree)
    groups, taken = _groups(tree, environments, bundles)
    for app, group in sorted(groups.items()):
        variants = variants_among(group.overlays, named)
        for each in variants:
            del group.overlays[each]
        if group.whole and group.base in tree.taken_in(group.whole) and not group.overlays:
            group.base = group.whole
        if not group.overlays and (group.base is None or group.base in taken):
            continue
        if DEFAULT not in environments:
            group.base = group.overlays.pop(DEFAULT, group.base)
        if group.base is None:
            group.base = _common(tree, group.overlays.values())
        folders = [*group.overlays.values(), *([] if group.base is None else [group.base])]
        if not any(tree.kustomization(each).keys() & _CONTENT for each in folders):
            continue
        files = tree.closure(folders)
        if any(map(declares_flux, files.values())) or any(map(_FLUX.search, files)):
            continue
        where = group.base if group.base is not None else min(group.overlays.values())
        name = name_of(app, title)
        if any(declares_applications(content, path) for path, content in files.items()):
            if objects := objects_of_kustomizations(tree, folders):
                file = tree.kustomization_file(where)
                command = tree.origin.command(name, where)
                if projects := projects_alone(files):
                    advice = f"remove {some_of(sorted(projects), 3)} from the resources of {file}"
                    refused = has_projects(projects, f"{advice}, then: {command}")
                else:
                    advice = f"remove the Applications from {file}, then: {command}"
                    refused = not_added(objects, advice)
                yield refused.refusal(name, where or ".")
            continue
        try:
            refuse_templates(files, tree.origin.command(name, where), kustomized=True)
        except NotImportable as error:
            yield error.refusal(name, where or ".")
            continue
        yield DiscoveredApp(
            name=name,
            form="kustomize",
            where=(app if group.overlays and app in tree.folders else where) or ".",
            path=group.base,
            overlays=group.overlays,
            environments=tuple(sorted(group.overlays)),
            notes=(note_on(variants),) if variants else (),
        )
    for folder in filter(tree.is_searched, sorted(bundles)):
        yield RefusedApp(
            name_of(folder, title),
            folder or ".",
            "Operator SDK makes a bundle of OLM from it",
            "add the apps whose folders it includes",
        )


def _bundles(tree: RepositoryTree) -> set[str]:
    """Kustomizations that a tool reads, with an operator and more, and nobody deploys."""
    return {
        folder
        for folder in tree.kustomizations
        if any(map(_BUNDLE.search, entries(tree.kustomization(folder))))
    }


def _groups(
    tree: RepositoryTree, environments: Collection[str], bundles: Collection[str]
) -> tuple[dict[str, _Group], Collection[str]]:
    """({folder of an app: its base and overlays}, folders that other kustomizations include)."""
    all_folders = sorted(
        each
        for each in tree.kustomizations
        if tree.is_searched(each) and not tree.in_chart(each) and each not in bundles
    )
    folders = [each for each in all_folders if tree.kustomization(each).get("kind") != "Component"]
    lists = {each for each in folders if _only_lists(tree, each, environments)}
    taken: dict[str, list[str]] = {}
    for each in all_folders:
        for other in tree.taken_in(each) if each not in lists else ():
            taken.setdefault(other, []).append(each)
    groups: dict[str, _Group] = {}
    for folder in folders:
        app, environment = app_and_environment(folder, environments)
        group = groups.setdefault(app, _Group())
        if folder in lists:
            continue
        takers = taken.get(folder, [])
        of_app = [app_and_environment(taker, environments)[0] == app for taker in takers]
        if environment == "base" or (environment is None and (any(of_app) or not takers)):
            group.base = group.base if environment is None and group.base is not None else folder
            group.whole = folder if environment is None else group.whole
        elif environment and (not takers or (environment in environments and all(of_app))):
            group.overlays[environment] = folder
    return groups, taken.keys()


def _common(tree: RepositoryTree, overlays: Iterable[str]) -> str | None:
    """The only folder that every overlay includes, wherever it is."""
    found = set.intersection(*(set(tree.taken_in(each)) for each in overlays))
    return found.pop() if len(found) == 1 else None


def _only_lists(
    tree: RepositoryTree,
    folder: str,
    environments: Collection[str],
    way: frozenset[str] = frozenset(),
) -> bool:
    """A kustomization that only includes other apps, or such lists, without changing them.

    way: folders visited so far, since kustomizations may include each other in a cycle.
    """
    content = tree.kustomization(folder)
    if not content or not content.keys() <= _PLAIN:
        return False
    listed = content.get("resources") or content.get("bases")
    found = tree.taken_in(folder)
    if not isinstance(listed, list) or not found or len(found) != len(listed):
        return False
    app, environment = app_and_environment(folder, environments)
    way |= {folder}
    lists = [
        each for each in found if each not in way and _only_lists(tree, each, environments, way)
    ]
    pairs = {app_and_environment(each, environments) for each in found if each not in lists}
    if any(each[0] == app for each in pairs):
        return False
    if not pairs:
        return True
    return environment is None or {each[1] for each in pairs} == {environment}
