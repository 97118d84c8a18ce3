"""Apps of plain manifests that nothing else includes. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.imports.beside_applications import (
    declares_applications,
    has_projects,
    not_added,
    objects_in,
    projects_alone,
)
from k8s_ucp.gitops.imports.findings import DiscoveredApp, NotImportable, RefusedApp
from k8s_ucp.gitops.imports.layouts.app_folders import app_and_environment, name_of
from k8s_ucp.gitops.imports.layouts.jsonnet import may_be_objects
from k8s_ucp.gitops.imports.templates import refuse_templates
from k8s_ucp.gitops.imports.trees import (
    RepositoryTree,
    declares_flux,
    invalid,
    is_application,
)
from k8s_ucp.gitops.manifests.forms import SeveralFolders, find_form, manifest_files
from k8s_ucp.gitops.manifests.other_tools import ytt_problem
from k8s_ucp.gitops.manifests.reachable import join, within
from k8s_ucp.gitops.manifests.yaml_text import OBJECT, dump_all

_KARGO = re.compile(rb"kargo\.akuity\.io/|^kind:[ \t]*AnalysisTemplate\b", re.MULTILINE)
"""Objects of a Kargo pipeline, and those that verify its stages."""
_MEANT = (OBJECT, re.compile(rb"^kind:", re.M))
"""Lines of what was meant to be an object."""


def find_manifests(
    tree: RepositoryTree, title: str, environments: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    """The apps of folders with manifests that nothing else includes."""
    folders, broken = _folders(tree)
    groups: dict[str, dict[str | None, str]] = {}
    for folder in sorted(_tops(tree, folders)):
        app, environment = app_and_environment(folder, environments)
        groups.setdefault(app, {})[environment] = folder
    for app, found in sorted(groups.items()):
        alone = found.keys() <= {None, "base"}
        for folder in list(found.values()) if alone else [min(found.values())]:
            name = name_of(folder if alone else app, title)
            try:
                manifests = _manifests(tree, folder)
                _refuse_flux(manifests)
                _refuse_kargo(tree, folder)
                refuse_templates(manifests, tree.origin.command(name, folder))
                if alone:
                    finding = plain_finding(tree, name, folder, folder)
                else:
                    finding = _with_kustomizations(tree, name, found)
                if _is_app(tree, name, [folder] if alone else [*found.values()]):
                    yield finding
            except NotImportable as error:
                yield error.refusal(name, folder or ".")
            except UsageError as error:
                yield RefusedApp(name, folder or ".", error.message, error.next or "correct it")
    for folder, problem in broken.items():
        # Beside or below readable manifests, it was the error of these.
        if not any(within(folder, one) for found in groups.values() for one in found.values()):
            name, advice = name_of(folder, title), problem.next or "correct it"
            yield RefusedApp(name, folder or ".", problem.message, advice)


def _folders(tree: RepositoryTree) -> tuple[dict[str, list[str]], dict[str, UsageError]]:
    """({folder: its manifests that nothing else includes}, {folder: why a file is none})."""
    covered = set(tree.closure(sorted(tree.kustomizations)))
    folders: dict[str, list[str]] = {}
    broken: dict[str, UsageError] = {}
    for path in tree.names:
        folder = path.rpartition("/")[0]
        if not tree.is_searched(folder) or folder.rpartition("/")[2] == "patches":
            continue
        if path in covered or tree.in_chart(path) or folder in tree.kustomizations:
            continue
        if (path.endswith(".jsonnet") and may_be_objects(tree, path)) or (
            path.endswith((".yaml", ".yml", ".json")) and _is_manifest(tree.read(path), path)
        ):
            folders.setdefault(folder, []).append(path)
        elif path.endswith((".yaml", ".yml")) and (error := _broken(tree.read(path), path)):
            broken.setdefault(folder, error)
    return folders, broken


def _tops(tree: RepositoryTree, folders: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Folders that are one app including their subfolders.

    If there are other apps below such a folder, its subfolders are listed as well. folders:
    {folder: its manifests}.
    """
    waiting = [*folders]
    while waiting:
        below = {
            each: [one for one in waiting if one != each and within(one, each)] for each in waiting
        }
        lower = {one for each, found in below.items() if each for one in found}
        top = [each for each in waiting if each not in lower]
        yield from top
        apps = {
            each
            for each in top
            for other in (*tree.kustomizations, *tree.charts)
            if each and within(other, each)
            if not any(name.endswith(".jsonnet") for name in folders[each])
        }
        waiting = [one for each in apps for one in below[each]]


def _manifests(tree: RepositoryTree, folder: str) -> dict[str, bytes]:
    """The files below a folder that may be manifests, without those of charts."""
    return {
        path: tree.read(path)
        for path in tree.below(folder)
        if path.endswith((".yaml", ".yml", ".json")) and not tree.in_chart(path)
    }


def _refuse_flux(manifests: Mapping[str, bytes]) -> None:
    """Raise NotImportable for Flux objects beside manifests: no cluster here has these kinds."""
    files = [path for path, content in manifests.items() if declares_flux(content)]
    if files:
        raise NotImportable(
            f"{files[0]} beside its manifests contains objects of Flux, which are not supported "
            "(the topology uses Argo CD)",
            "move its manifests to a folder of their own, and add that by `ucp app add`",
        )


def _is_app(tree: RepositoryTree, name: str, folders: Collection[str]) -> bool:
    """Whether manifests are an app, not Applications with their Namespaces.

    Raises NotImportable for Applications beside other manifests: they are apps of their own.
    """
    files = {path: content for each in folders for path, content in _manifests(tree, each).items()}
    declaring = {path for path, each in files.items() if declares_applications(each, path)}
    if not declaring:
        return True
    found = {path: objects_in(content, path) for path, content in files.items()}
    others = [path for path, objects in found.items() if objects]
    if not others:
        return False
    if projects := projects_alone(files):
        shown = some_of(sorted(projects), 3)
        command = tree.origin.command(name, min(folders))
        raise has_projects(projects, f"move {shown} to another folder, then: {command}")
    advice = "move that to a folder of its own, and add it by `ucp app add`"
    if len(others) == 1 and others[0] not in declaring:
        advice = tree.origin.command(name, others[0])
    raise not_added([each for objects in found.values() for each in objects], advice)


def _refuse_kargo(tree: RepositoryTree, folder: str) -> None:
    """Raise NotImportable for a folder with a Kargo pipeline and nothing else."""
    contents = {path: tree.read(path) for path in tree.below(folder)}
    # Most folders have nothing of Kargo, and parsing their manifests takes long.
    if not any(b"kargo.akuity.io/" in content for content in contents.values()):
        return
    manifests = [content for path, content in contents.items() if _is_manifest(content, path)]
    if manifests and all(map(_KARGO.search, manifests)):
        raise NotImportable(
            "it is a Kargo pipeline, which promotes apps but isn't an app",
            "declare the order of environments (promotesFrom in ucp.yaml), then ucp promote APP",
        )


def plain_finding(tree: RepositoryTree, name: str, folder: str, where: str) -> DiscoveredApp:
    """An app from a folder without kustomization and chart. Raises NotImportable."""
    start = f"{folder}/" if folder else ""
    files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
    try:
        form = find_form(files).form
    except SeveralFolders as error:
        here = {name: content for name, content in files.items() if "/" not in name}
        first = next(iter(manifest_files(here)), "FILE")
        raise NotImportable(
            f"its folder also contains other apps ({', '.join(error.folders[:3])}), which are "
            "listed separately",
            f"{tree.origin.command(name, start + first)}, and so on for each file",
        ) from error
    except UsageError as error:
        raise NotImportable(
            error.message, error.next or "select its folder with ucp app add"
        ) from error
    if form == "jsonnet" and not folder and (tree.kustomizations or tree.charts):
        raise NotImportable(
            "its jsonnet is at the top of the repository, beside other apps, and imports may be "
            "anywhere below",
            f"copy what it uses to a folder of its own, then: ucp app add {name} FOLDER",
        )
    return DiscoveredApp(name=name, form=form, where=where or ".", path=folder)


def _with_kustomizations(
    tree: RepositoryTree, name: str, found: Mapping[str | None, str]
) -> DiscoveredApp:
    """Plain manifests for several environments: each folder gets a kustomization.

    Raises NotImportable.
    """
    generated: dict[str, bytes] = {}
    overlays = {}
    base = found.get("base", found.get(None))
    for environment, folder in found.items():
        start = f"{folder}/" if folder else ""
        files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
        if any(each.endswith(".jsonnet") for each in files):
            if b"tanka.dev/" in files.get("spec.json", b""):
                raise NotImportable(
                    "Tanka renders its environments",
                    "commit what `tk export` writes, and add that by `ucp app add`",
                )
            raise NotImportable(
                "each environment has different jsonnet, but an app can have only one",
                tree.origin.command(name, folder),
            )
        content = {"resources": manifest_files(files)}
        generated[join(folder, "kustomization.yaml")] = dump_all([content]).encode()
        if environment not in (None, "base"):
            overlays[str(environment)] = folder
    return DiscoveredApp(
        name=name,
        form="kustomize",
        where=min(found.values()),
        path=base,
        overlays=overlays,
        environments=tuple(sorted(overlays)),
        generated=generated,
        notes=("plain manifests for each environment: each gets a kustomization",),
    )


def _is_of_other_tools(content: bytes) -> bool:
    return b"kustomize.config.k8s.io/" in content or declares_flux(content)


def _is_manifest(content: bytes, path: str) -> bool:
    if b"apiVersion" not in content or b"kind" not in content or _is_of_other_tools(content):
        return False
    if declares_applications(content, path) and not objects_in(content, path):
        return False
    try:
        return bool(manifest_files({path.rpartition("/")[2]: content}))
    except UsageError:
        return False


def _broken(content: bytes, path: str) -> UsageError | None:
    """Why a file that was meant to be a manifest is not one: it isn't valid YAML, or a template."""
    if problem := ytt_problem({path: content}):
        return problem
    if not all(each.search(content) for each in _MEANT) or _is_of_other_tools(content):
        return None
    if is_application(content.decode(errors="replace")):
        return None
    return invalid(content, path)
