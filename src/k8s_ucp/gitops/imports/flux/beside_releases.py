"""Objects beside Flux releases, in the same folder or the same build. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.imports.findings import (
    PARENTS,
    ArgoDocument,
    DiscoveredApp,
    app_name,
    named_by,
)
from k8s_ucp.gitops.imports.flux.builds import FluxBuild, has_hash
from k8s_ucp.gitops.imports.flux.variables import is_filled
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import manifest_files
from k8s_ucp.gitops.manifests.reachable import join
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, maps, part

API = "fluxcd.io/"
_KNOWN = frozenset(["Namespace", "Application", "ApplicationSet", "AppProject"])
"""Kinds that are created anyway, or read separately."""
_BESIDE = "beside-releases"
"""Folder for the objects of a build."""
_VARIABLE = re.compile(r"\$\{[^{}]*\}")


@dataclass(frozen=True)
class ReleaseOfBuild:
    """A build, and the app imported from one of its releases."""

    build: FluxBuild
    app: DiscoveredApp


def beside_builds(
    releases: Sequence[ReleaseOfBuild],
) -> Iterator[DiscoveredApp]:
    """The objects built beside releases, as another app with an overlay per environment."""
    by_folder: dict[str, list[ReleaseOfBuild]] = {}
    for each in releases:
        by_folder.setdefault(_without_environment(each.build), []).append(each)
    for folder, found in by_folder.items():
        names = sorted({each.app.name for each in found})
        name = names[0] if len(names) == 1 else named_by(folder, "all")[1]
        builds = list(
            {(each.build.folder, each.build.environment): each for each in found}.values()
        )
        yield from _beside_app(f"{name}-more", builds, names)


def _without_environment(build: FluxBuild) -> str:
    above = [each for each in build.folder.split("/") if each not in (build.environment, *PARENTS)]
    return "/".join(above)


def _beside_app(
    name: str, builds: Sequence[ReleaseOfBuild], names: Sequence[str]
) -> Iterator[DiscoveredApp]:
    generated: dict[str, bytes] = {}
    overlays: dict[str, str] = {}
    path = None
    filled: list[Mapping[str, Any]] = []
    app = builds[0].app
    namespace = app.namespace or app.name
    beside = [
        (each.build, [one for one in each.build.objects if _is_beside(one, each.build)])
        for each in builds
    ]
    # No app may write to `default`, and a release from there gets a namespace of its own.
    is_moved = namespace == "default" and all(
        part(each, "metadata").get("namespace", namespace) == namespace
        for _, objects in beside
        for each in objects
    )
    namespace = app.name if is_moved else namespace
    for build, objects in beside:
        if not objects:
            continue
        filled += filter(is_filled, objects)
        folder = join(join(build.folder, _BESIDE), build.environment or "")
        moved = {"namespace": namespace} if is_moved else {}
        resources = dump_all([{"resources": ["objects.yaml"], **moved}])
        generated[join(folder, "kustomization.yaml")] = resources.encode()
        generated[join(folder, "objects.yaml")] = dump_all(objects).encode()
        if build.environment:
            overlays[build.environment] = folder
        else:
            path = folder
    if not generated:
        return
    notes = [f"it is what kustomize makes beside {some_of(names)}, in one file"]
    if variables := unfilled([dump_all(filled)]):
        notes.append(f"Flux would fill {variables} in it: write what they stand for")
    if is_moved:
        notes.append(
            f"its objects go to the namespace {namespace}, as those of {app.name} do: no app may "
            "write to default"
        )
    yield DiscoveredApp(
        name=app_name(name),
        form="kustomize",
        where=builds[0].build.file,
        path=path,
        overlays=overlays,
        environments=tuple(sorted(overlays)),
        namespace=namespace,
        generated=generated,
        notes=tuple(notes),
    )


def encrypted(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Objects encrypted by SOPS, which clusters can't decrypt without Flux."""
    found = (each for each in objects if "sops" in each)
    return sorted({f"{each.get('kind')} {part(each, 'metadata').get('name')}" for each in found})


def unfilled(texts: Iterable[str | bytes]) -> str:
    """Variables that only Flux can substitute, at most five of them."""
    names = sorted({*_VARIABLE.findall("".join(str(each) for each in texts))})
    return ", ".join(names[:5])


def _is_beside(content: Mapping[str, Any], build: FluxBuild) -> bool:
    """The object isn't Flux's, created anyway, encrypted, or values of a release."""
    if content.get("kind") in _KNOWN or API in str(content.get("apiVersion")) or "sops" in content:
        return False
    name = str(part(content, "metadata").get("name"))
    taken = (
        str(each.get("name"))
        for release in build.objects
        for each in maps(part(release, "spec"), "valuesFrom")
        if release.get("kind") == "HelmRelease" and each.get("kind") == content.get("kind")
    )
    return not any(name == each or has_hash(name, each) for each in taken)


def beside_release(release: ArgoDocument, tree: RepositoryTree) -> Iterator[tuple[str, str]]:
    """(file, kind) of the objects in the release's folder that aren't Flux's, nor encrypted."""
    for name, each in objects_beside(release, tree):
        kind = str(each.get("kind") or "")
        skipped = API in str(each.get("apiVersion")) or "sops" in each
        if kind and kind not in _KNOWN and not skipped:
            yield name, kind


def beside_flux(release: ArgoDocument, tree: RepositoryTree) -> set[str]:
    """Files in the release's folder that have objects of Flux, and so can't be added."""
    found = objects_beside(release, tree)
    return {name for name, each in found if API in str(each.get("apiVersion"))}


def folder_of(release: ArgoDocument) -> str:
    """The folder of the release's file."""
    return release.path.rpartition("/")[0]


def objects_beside(
    release: ArgoDocument, tree: RepositoryTree
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(file, object) of all objects in the release's folder."""
    folder = folder_of(release)
    files = {each: tree.read(each) for each in tree.names if each.rpartition("/")[0] == folder}
    for name, content in files.items():
        try:
            named = {name.rpartition("/")[2]: content}
            found = documents(content, name) if manifest_files(named) else []
        except UsageError:
            continue
        yield from ((name, each) for each in found if isinstance(each, dict))
