"""Builds kustomizations with Flux releases, including changes by Flux's own Kustomizations.

Pure, except for kustomize, which is passed in.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.imports.findings import ArgoDocument, in_path
from k8s_ucp.gitops.imports.flux.outside_files import with_files_inside
from k8s_ucp.gitops.imports.flux.variables import fill_variables
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS, manifest_files, readable
from k8s_ucp.gitops.manifests.reachable import join, kustomization, resolve, within
from k8s_ucp.gitops.manifests.sources import entries
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, part

Build = Callable[[Mapping[str, bytes], str], str]
"""(files, folder of a kustomization among them) to kustomize's output as YAML.

Raises UcpError.
"""

CHANGES = (
    *("patches", "patchesStrategicMerge", "patchesJson6902", "replacements", "components"),
    *("transformers", "namePrefix", "nameSuffix"),
)
"""Keys of a kustomization that can change a release."""
_ADDS = ("namespace", "configMapGenerator", "secretGenerator")
"""Keys that don't change a release itself, but its namespace or the objects beside it."""
_OF_LISTS = frozenset(["apiVersion", "kind", "metadata", "resources"])
"""Keys of a kustomization that only lists others."""
LAID_OVER = ("components", "patches", "images", "namePrefix", "nameSuffix", "targetNamespace")
"""Keys of Flux's Kustomization that it merges into the kustomization in the folder."""


@dataclass(frozen=True)
class FluxBuild:
    """A kustomization as Flux deploys it. failure: why it can't be built, or ""."""

    folder: str
    environment: str | None
    read: frozenset[str]
    """Files of the tree that it consists of."""
    file: str = ""
    """The file of its kustomization, or of Flux's Kustomization if that is generated."""
    is_generated: bool = False
    by: str = ""
    """The file of Flux's Kustomization, if there is one."""
    objects: tuple[Mapping[str, Any], ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class BuiltDocument(ArgoDocument):
    """A Flux object in a build. path: the file of the build, or its own if that is generated."""

    build: FluxBuild = field(default_factory=lambda: FluxBuild("", None, frozenset()))


@dataclass(frozen=True)
class _Overlaid:
    """A folder, and the Flux Kustomization that deploys it, if there is one."""

    folder: str
    by: ArgoDocument | None = None


def build_releases(
    tree: RepositoryTree,
    of_flux: Sequence[ArgoDocument],
    environments: Collection[str],
    build: Build,
    elsewhere: Callable[[ArgoDocument], bool],
) -> list[FluxBuild]:
    """Builds of the folders whose kustomizations change the releases in files.

    of_flux: the Flux objects. elsewhere: whether a Kustomization deploys another repository's
    folder.
    """
    releases = {each.path for each in of_flux if each.kind == "HelmRelease"}
    chosen: list[tuple[_Overlaid, Collection[str], bool]] = []
    deployed: dict[str, set[str | None]] = {each: set() for each in releases}
    for overlaid in [*_deployed(tree, of_flux, elsewhere), *_roots(tree, environments)]:
        made_of = tree.closure([overlaid.folder])
        included = releases & made_of.keys()
        environment = _environment(overlaid, environments)
        if not included or (
            overlaid.by is None and all(_is_among(environment, deployed[one]) for one in included)
        ):
            continue
        makes_others = _makes_others(made_of, overlaid)
        if overlaid.by or makes_others:
            for one in included:
                deployed[one].add(environment)
        chosen.append((overlaid, included, makes_others))
    changed = {one for _, included, makes_others in chosen if makes_others for one in included}
    return [
        _built(tree, each, environments, build)
        for each, included, makes_others in chosen
        # Beside the builds of other environments, the release in the file would not be noticed.
        if makes_others
        or (_environment(each, environments) is not None and not changed.isdisjoint(included))
    ]


def _is_among(environment: str | None, others: Collection[str | None]) -> bool:
    """Whether what is deployed to these is to this one; None: to any."""
    return environment in others or None in others or (environment is None and bool(others))


def _environment(overlaid: _Overlaid, environments: Collection[str]) -> str | None:
    by = overlaid.by
    return (in_path(by.path, environments) if by else None) or in_path(
        overlaid.folder, environments
    )


def with_kustomizations(
    tree: RepositoryTree, of_flux: Sequence[ArgoDocument], elsewhere: Callable[[ArgoDocument], bool]
) -> RepositoryTree:
    """The tree with the kustomizations that Flux generates for folders that have none.

    Only where Flux changes releases in the folder; others are read from their own files.
    Source: https://fluxcd.io/flux/components/kustomize/kustomizations/#generate-kustomizationyaml
    """
    releases = [each.path for each in of_flux if each.kind == "HelmRelease"]
    generated: dict[str, bytes] = {}
    for each in of_flux:
        spec = part(each.content, "spec")
        folder = resolve("", str(spec.get("path") or ""))
        if each.kind != "Kustomization" or not folder or folder in tree.kustomizations:
            continue
        changes = any(spec.get(key) for key in (*LAID_OVER, "postBuild"))
        if changes and any(within(path, folder) for path in releases) and not elsewhere(each):
            content = {"resources": _resources(tree, folder)}
            generated[join(folder, KUSTOMIZATIONS[0])] = dump_all([content]).encode()
    return tree.with_generated(generated) if generated else tree


def _resources(tree: RepositoryTree, folder: str) -> list[str]:
    """The manifests below a folder, and its outermost kustomizations instead of their files."""
    inner = [each for each in tree.kustomizations if each != folder and within(each, folder)]
    outermost = [
        each for each in inner if not any(each != one and within(each, one) for one in inner)
    ]
    files = {
        each: tree.read(each)
        for each in tree.below(folder)
        if each.endswith((".yaml", ".yml")) and not any(within(each, one) for one in inner)
    }
    manifests = manifest_files(readable(files))
    return sorted(each.removeprefix(f"{folder}/") for each in (*outermost, *manifests))


def _deployed(
    tree: RepositoryTree, of_flux: Sequence[ArgoDocument], elsewhere: Callable[[ArgoDocument], bool]
) -> Iterator[_Overlaid]:
    for each in of_flux:
        spec = part(each.content, "spec")
        folder = str(resolve("", str(spec.get("path") or "")))
        if each.kind == "Kustomization" and folder in tree.kustomizations and not elsewhere(each):
            changed = any(spec.get(key) for key in LAID_OVER)
            for one in [folder] if changed else _without_lists(tree, folder):
                yield _Overlaid(one, each)


def _roots(tree: RepositoryTree, environments: Collection[str]) -> Iterator[_Overlaid]:
    """Kustomizations that no other one includes."""
    taken = {other for each in tree.kustomizations for other in tree.taken_in(each)}
    for each in sorted(tree.kustomizations - taken):
        if tree.kustomization(each).get("kind") != "Component":
            # What an environment's list includes doesn't say which environment it is.
            whole = in_path(each, environments) is not None
            yield from map(_Overlaid, [each] if whole else _without_lists(tree, each))


def _without_lists(tree: RepositoryTree, folder: str) -> Iterator[str]:
    """The folder, or if its kustomization only lists others, the folders of those.

    Otherwise one that can't be built would hold up all, and apps beside a release would be taken
    for its objects.
    """
    waiting, seen = [folder], set[str]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        content = tree.kustomization(each)
        listed = tree.taken_in(each) if content.keys() <= _OF_LISTS else []
        if listed and len(listed) == len(entries(content)):
            waiting += reversed(listed)
        else:
            yield each


def _makes_others(made_of: Mapping[str, bytes], overlaid: _Overlaid) -> bool:
    spec = part(overlaid.by.content, "spec") if overlaid.by else {}
    if any(spec.get(key) for key in LAID_OVER) or part(spec, "postBuild"):
        return True
    folders = {each.rpartition("/")[0] for each in made_of}
    return any(kustomization(made_of, each).keys() & {*CHANGES, *_ADDS} for each in sorted(folders))


def _built(
    tree: RepositoryTree, overlaid: _Overlaid, environments: Collection[str], build: Build
) -> FluxBuild:
    folder, by = overlaid.folder, overlaid.by
    spec = part(by.content, "spec") if by else {}
    content = _laid_over(tree.kustomization(folder), spec)
    components = [
        resolve(folder, each) for each in entries({"components": content.get("components")})
    ]
    here = [each for each in components if each in tree.kustomizations]
    files = tree.closure([folder, *(str(each) for each in here)])
    environment = _environment(overlaid, environments)
    file = tree.kustomization_file(folder)
    is_generated = by is not None and file in tree.generated
    declared = by.path if by and is_generated else file
    deployed_by = by.path if by else ""
    made = FluxBuild(folder, environment, frozenset(files), declared, is_generated, deployed_by)
    if away := next(_from_elsewhere(files), None):
        return replace(made, failure=f"one loads {away}, which is not in the repository")
    files[tree.kustomization_file(folder)] = dump_all([content]).encode()
    try:
        text = build(with_files_inside(files), folder)
        text = fill_variables(text, part(spec, "postBuild"), tree, environment)
        objects = documents(text.encode(), folder)
    except UcpError as error:
        return replace(made, failure=" ".join(error.message.split()))
    return replace(made, objects=tuple(each for each in objects if isinstance(each, dict)))


def _laid_over(content: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """A kustomization with the changes that Flux makes to it before a build."""
    found = dict(content)
    for key in ("components", "patches", "images"):
        if isinstance(more := spec.get(key), list):
            own = found.get(key)
            found[key] = [*(own if isinstance(own, list) else ()), *more]
    for key, name in (("namePrefix",) * 2, ("nameSuffix",) * 2, ("targetNamespace", "namespace")):
        if spec.get(key):
            found[name] = spec[key]
    return found


def _from_elsewhere(files: Mapping[str, bytes]) -> Iterator[str]:
    """Entries of kustomizations outside the repository, which are not fetched."""
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if name not in KUSTOMIZATIONS:
            continue
        for entry in entries(kustomization(files, folder)):
            inside = resolve(folder, entry)
            if inside is None or (
                inside not in files
                and not any(join(inside, each) in files for each in KUSTOMIZATIONS)
            ):
                yield entry


def has_hash(name: str, reference: str) -> bool:
    """The name is the reference with kustomize's hash.

    kustomize adds it to no reference across namespaces, and Flux sets the namespace later.
    """
    return bool(re.fullmatch(rf"{re.escape(reference)}-[a-z0-9]{{10}}", name))


def documents_of(
    builds: Sequence[FluxBuild], of_flux: Sequence[ArgoDocument]
) -> Iterator[BuiltDocument]:
    """All objects of the builds. of_flux: the Flux objects in files."""
    for build in builds:
        own = {
            (each.kind, each.name): (each.path, each.line)
            for each in of_flux
            if each.path in build.read and build.is_generated
        }
        for content in build.objects:
            made = BuiltDocument(build.file, 1, content, build)
            path, line = own.get((made.kind, made.name), (build.file, 1))
            yield replace(made, path=path, line=line)


def value_of(held: Mapping[str, Any], key: str) -> str | None:
    """The text in a key of a ConfigMap or a Secret; None if there is none."""
    text = part(held, "data").get(key)
    if held.get("kind") != "Secret":
        return text if isinstance(text, str) else None
    plain = part(held, "stringData").get(key)
    if isinstance(plain, str):
        return plain
    if not isinstance(text, str):
        return None
    try:
        # Long ones are written in several lines.
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError:
        return None


def values_of(held: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """The values in a key of a ConfigMap or a Secret; None if there are none."""
    text = value_of(held, key)
    if text is None:
        return None
    try:
        found = documents(text.encode(), key)
    except UsageError:
        return None
    first = found[0] if found else {}
    return first if isinstance(first, dict) else {} if first is None else None
