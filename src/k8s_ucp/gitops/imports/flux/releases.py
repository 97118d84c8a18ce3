"""Imports Flux releases as apps, and suggests a command for everything else. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from k8s_ucp.errors import some_of
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    DiscoveredApp,
    NotImportable,
    RefusedApp,
    app_name,
    in_path,
)
from k8s_ucp.gitops.imports.flux.beside_releases import (
    API,
    ReleaseOfBuild,
    beside_builds,
    beside_flux,
    beside_release,
    encrypted,
    folder_of,
    objects_beside,
    unfilled,
)
from k8s_ucp.gitops.imports.flux.builds import (
    CHANGES,
    BuiltDocument,
    FluxBuild,
    build_releases,
    documents_of,
    has_hash,
    value_of,
    values_of,
    with_kustomizations,
)
from k8s_ucp.gitops.imports.flux.charts import (
    OWN,
    FluxContext,
    NotAlone,
    chart_of,
    chart_source,
    command_of_release,
    git_revision,
    source_of,
    values_of_files,
    versions_of,
)
from k8s_ucp.gitops.imports.helm_values import merge, set_value
from k8s_ucp.gitops.imports.trees import MOVING, Origin, RepositoryTree
from k8s_ucp.gitops.manifests.reachable import resolve, within
from k8s_ucp.gitops.manifests.yaml_text import dump_all, maps, part
from k8s_ucp.topology.rules.names import closed_to_apps

_SOURCES = ("HelmRepository", "OCIRepository", "GitRepository")


def read_flux(
    declared: Collection[ArgoDocument], context: FluxContext
) -> Iterator[DiscoveredApp | RefusedApp]:
    """Releases as apps; folders without releases, and image automation, as refusals.

    Ignores sources and alerts.
    """
    tree = context.tree
    of_files = [each for each in declared if API in str(each.content.get("apiVersion"))]
    builds = _builds(of_files, context)
    read = {path for each in builds if not each.failure for path in each.read}
    ours: list[ArgoDocument] = [each for each in of_files if each.path not in read]
    built = list(documents_of(builds, of_files))
    ours += [each for each in built if API in str(each.content.get("apiVersion"))]
    sources = [each for each in ours if each.kind in _SOURCES]
    releases: dict[str, list[ArgoDocument]] = {}
    for each in ours:
        if each.kind == "HelmRelease":
            releases.setdefault(each.name, []).append(each)
    for each in of_files:
        if each.kind == "Kustomization":
            yield from _folder(each, of_files, context)
    yield from _image_automation(of_files)
    changed = _changed(tree) if releases else frozenset()
    failures = {path: each.failure for each in builds for path in each.read if each.failure}
    more: list[ReleaseOfBuild] = []
    noted: set[str] = set()
    for same_name in map(_distinct, releases.values()):
        complete = [each for each in same_name if chart_of(each)]
        try:
            _refuse_changed(same_name, changed, failures)
            found = _release(same_name, sources, context, noted)
        except NotAlone as error:
            lacks = ", which lacks what the kustomizations change" if error.is_patched else ""
            flags = _flags_of_clusters(same_name, context) if error.is_repeated else ""
            for release in complete or same_name:
                command = command_of_release(release, source_of(release, sources))
                yield release.refused(str(error), f"{flags}{command}{lacks}")
            continue
        yield found
        more += [
            ReleaseOfBuild(each.build, found)
            for each in same_name
            if isinstance(each, BuiltDocument)
        ]
    yield from beside_builds(more)


def _image_automation(of_flux: Sequence[ArgoDocument]) -> Iterator[RefusedApp]:
    """A refusal for all that would change versions in the repository."""
    kinds = ("ImagePolicy", "ImageUpdateAutomation")
    if where := sorted(each.where for each in of_flux if each.kind in kinds):
        yield RefusedApp(
            "image-automation",
            some_of(where, 1),
            "Flux's image automation is not imported: here, the pipeline that builds a version "
            "promotes it",
            "ucp promote APP --env ENV --tag TAG in that pipeline (--chart-version for a chart)",
        )


def own_kustomizations(
    declared: Collection[ArgoDocument], context: FluxContext
) -> list[ArgoDocument]:
    """Flux's Kustomizations that deploy folders of this repository."""
    of_flux = [each for each in declared if API in str(each.content.get("apiVersion"))]
    return [
        each
        for each in of_flux
        if each.kind == "Kustomization" and _elsewhere(each, of_flux, context) is None
    ]


_PATCHED = "HelmRelease of Flux is patched by kustomizations"
_FLUX = "Kustomization of Flux is not supported (the topology uses Argo CD)"


def _refuse_changed(
    releases: Sequence[ArgoDocument], changed: Collection[str], failures: Mapping[str, str]
) -> None:
    """Raise NotAlone for releases that kustomizations change, but that could not be built."""
    for each in releases:
        if each.path in changed and not isinstance(each, BuiltDocument):
            why = f": {failures[each.path]}" if each.path in failures else ""
            raise NotAlone(f"{_PATCHED}{why}", is_patched=True)


def _builds(of_flux: Sequence[ArgoDocument], context: FluxContext) -> list[FluxBuild]:
    if context.build is None or not any(each.kind == "HelmRelease" for each in of_flux):
        return []

    def elsewhere(document: ArgoDocument) -> bool:
        return _elsewhere(document, of_flux, context) is not None

    tree = with_kustomizations(context.tree, of_flux, elsewhere)
    return build_releases(tree, of_flux, context.environments, context.build, elsewhere)


def _elsewhere(
    document: ArgoDocument, of_flux: Sequence[ArgoDocument], context: FluxContext
) -> ArgoDocument | None:
    """The source of a Kustomization that deploys from another repository, else None."""
    named = part(part(document.content, "spec"), "sourceRef")
    if named.get("name") == OWN:
        return None
    for each in of_flux:
        if (each.kind, each.name) == (named.get("kind"), named.get("name")):
            spec = part(each.content, "spec")
            revision = git_revision(part(spec, "ref")) or ""
            if revision not in MOVING or not context.same(str(spec.get("url") or "")):
                return each
    return None


def _folder(
    document: ArgoDocument, of_flux: Sequence[ArgoDocument], context: FluxContext
) -> Iterator[RefusedApp]:
    """A refusal with the command for a Kustomization's folder, if that contains no Flux objects."""
    path = resolve("", str(part(document.content, "spec").get("path") or ""))
    if source := _elsewhere(document, of_flux, context):
        yield document.refused(
            f"{_FLUX}; it deploys from another repository or branch", _of_folder(document, source)
        )
        return
    used = context.tree.closure([path]) if path in context.tree.kustomizations else {}
    deploys = any(within(other.path, path or "") or other.path in used for other in of_flux)
    if path in context.tree.folders and not deploys:
        command = context.tree.origin.command(app_name(document.name), path or "")
        yield replace(document.refused(_FLUX, command), folder=path)


def _of_folder(document: ArgoDocument, source: ArgoDocument) -> str:
    """The command for a folder of another repository."""
    spec = part(source.content, "spec")
    url, ref = str(spec.get("url") or "URL"), part(spec, "ref")
    if source.kind != "GitRepository":
        return f"flux pull artifact {url} -o DIR; then: ucp app add {app_name(document.name)} DIR"
    path = resolve("", str(part(document.content, "spec").get("path") or ""))
    origin = Origin(url=url, revision=git_revision(ref))
    return origin.command(app_name(document.name), path or "")


def _distinct(releases: Sequence[ArgoDocument]) -> list[ArgoDocument]:
    """The releases without identical builds for the same environment."""
    found: list[ArgoDocument] = []
    for each in releases:
        same = (
            one
            for one in found
            if isinstance(one, BuiltDocument)
            and isinstance(each, BuiltDocument)
            and one.build.environment == each.build.environment
            and one.content == each.content
        )
        if next(same, None) is None:
            found.append(each)
    return found


def _flags_of_clusters(releases: Sequence[ArgoDocument], context: FluxContext) -> str:
    """Flags that make the clusters that deploy the releases known as environments.

    They are the folders in which the paths of their Kustomizations begin to differ.
    """
    files = {each.build.by for each in releases if isinstance(each, BuiltDocument)}
    paths = [each.split("/") for each in sorted(files)]
    same = len(posixpath.commonprefix(paths)) if len(paths) > 1 else 0
    clusters = [each[same] for each in paths if len(each) > same + 1]
    if not same or len(clusters) < len(paths):
        return ""
    flags = [f"--map {quote(each)}=ENV" for each in clusters if each not in context.environments]
    return f"{' '.join(flags)}, if these are environments; else " if flags else ""


def _environment(release: ArgoDocument, context: FluxContext) -> str | None:
    if isinstance(release, BuiltDocument):
        return release.build.environment
    return in_path(release.path, context.environments)


def _release(
    releases: Sequence[ArgoDocument],
    sources: Sequence[ArgoDocument],
    context: FluxContext,
    noted: set[str],
) -> DiscoveredApp:
    """One app from a release, or from one per environment with the same name.

    noted: folders whose other objects a note already lists; receives more. Raises NotAlone.
    """
    first = releases[0]
    environments = [_environment(each, context) for each in releases]
    if not all(map(chart_of, releases)):
        raise NotAlone(_PATCHED, is_patched=True)
    if len(releases) > 1 and (None in environments or len({*environments}) < len(environments)):
        raise NotAlone(
            "HelmRelease of Flux is declared several times under this name", is_repeated=True
        )
    found = [chart_source(each, source_of(each, sources), context) for each in releases]
    remote, path = found[0]
    versions = versions_of(environments, found)
    values: dict[str, str | bytes] = {}
    for environment, each in zip(environments, releases, strict=True):
        if values_of_release := _values(each, context.tree):
            values[environment or ""] = dump_all([values_of_release]).encode()
    spec = part(first.content, "spec")
    metadata = part(first.content, "metadata")
    given = spec.get("targetNamespace") or metadata.get("namespace")
    namespace = str(given) if given else _target(first, context)
    return DiscoveredApp(
        name=app_name(first.name),
        form="helm",
        where=first.where,
        path=path,
        values=values,
        environments=tuple(sorted(each for each in environments if each)),
        namespace=namespace,
        remote=remote,
        versions=versions,
        notes=tuple(_notes(releases, values, namespace, context.tree, noted)),
    )


def _values(release: ArgoDocument, tree: RepositoryTree) -> Mapping[str, Any]:
    """Values of files, of ConfigMaps and Secrets in their order, then its own. Raises NotAlone.

    Of Secrets, those that are plain in the repository, such as generated ones.

    Source: https://fluxcd.io/flux/components/helm/helmreleases/#values-references
    """
    spec = part(release.content, "spec")
    found = values_of_files(release, tree)
    for each in maps(spec, "valuesFrom"):
        kind, name = str(each.get("kind")), str(each.get("name"))
        held = _held(release, kind, name, tree)
        if held is not None:
            found = _with_values(found, each, held)
        elif not each.get("optional"):
            raise NotAlone(
                f"HelmRelease of Flux: the ConfigMap {name} of its valuesFrom does not exist"
                if kind == "ConfigMap"
                else f"HelmRelease of Flux uses valuesFrom {kind} {name}, which is not read"
            )
    return merge(found, part(spec, "values"))


def _with_values(
    values: dict[str, Any], reference: Mapping[str, Any], held: Mapping[str, Any]
) -> dict[str, Any]:
    """The values with those that are held, at the reference's targetPath. Raises NotAlone."""
    key, target = str(reference.get("valuesKey") or "values.yaml"), reference.get("targetPath")
    text = value_of(held, key)
    of_file = values_of(held, key)
    if text is None or (of_file is None and not target):
        what = f"{held.get('kind')} {reference.get('name')}"
        raise NotAlone(f"HelmRelease of Flux: the {what} of its valuesFrom has no values")
    if not target:
        return merge(values, of_file or {})
    found = dict(values)
    # Flux takes a quoted value as a string.
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    try:
        set_value(found, str(target), text[1:-1] if quoted else text, literal=quoted)
    except NotImportable as error:
        raise NotAlone(
            f"HelmRelease of Flux: the targetPath {target} of its valuesFrom is not read"
        ) from error
    return found


def _held(
    release: ArgoDocument, kind: str, name: str, tree: RepositoryTree
) -> Mapping[str, Any] | None:
    """The ConfigMap or Secret in the release's build, or in its folder, if it is not encrypted."""
    if isinstance(release, BuiltDocument):
        objects = [*release.build.objects]
    else:
        objects = [each for _, each in objects_beside(release, tree)]
    by_name = {
        str(part(each, "metadata").get("name")): each
        for each in objects
        if each.get("kind") == kind and "sops" not in each
    }
    if name in by_name:
        return by_name[name]
    found = [each for own, each in by_name.items() if has_hash(own, name)]
    return found[0] if len(found) == 1 else None


def _target(release: ArgoDocument, context: FluxContext) -> str | None:
    """The target namespace of the closest Flux Kustomization above the release's file."""
    found: dict[str, str] = {}
    for each in context.tree.documents_of_argocd:
        spec = part(each.content, "spec")
        path = resolve("", str(spec.get("path") or ""))
        namespace = spec.get("targetNamespace")
        if each.kind == "Kustomization" and path and namespace and within(release.path, path):
            found[path] = str(namespace)
    return found[max(found, key=len)] if found else None


def _notes(
    releases: Sequence[ArgoDocument],
    values: Mapping[str, str | bytes],
    namespace: str | None,
    tree: RepositoryTree,
    noted: set[str],
) -> Iterator[str]:
    if names := unfilled(values.values()):
        yield f"Flux would fill {names} in its values: write what they stand for"
    if hubs := sorted({each for one in releases if (each := _kubeconfig(one))}):
        yield (
            f"Flux deploys it to the cluster in the Secret {', '.join(hubs)} (kubeConfig); here it "
            "is deployed to the clusters of its environments"
        )
    if secrets := sorted({each for one in releases for each in _optional_secrets(one, tree)}):
        yield f"Flux would add the values in the Secret {', '.join(secrets)}, if it exists"
    builds = [each.build for each in releases if isinstance(each, BuiltDocument)]
    of_files = [
        each
        for each in releases
        if not isinstance(each, BuiltDocument) and folder_of(each) not in noted
    ]
    noted.update(map(folder_of, of_files))
    in_folders = (one for each in of_files for _, one in objects_beside(each, tree))
    if sops := encrypted([*(one for each in builds for one in each.objects), *in_folders]):
        yield f"SOPS encrypts {', '.join(sops)}: create it on the clusters"
    name = app_name(releases[0].name)
    if beside := [one for each in of_files for one in beside_release(each, tree)]:
        home = name if not namespace or closed_to_apps(namespace) else namespace
        mixed = {file for each in of_files for file in beside_flux(each, tree)}
        yield _note_on_others(beside, mixed, tree.origin, name, home)
    release = part(releases[0].content, "spec").get("releaseName")
    if release and release != name:
        yield f"its release {release} will be called {name}"


def _note_on_others(
    beside: Sequence[tuple[str, str]],
    mixed: Collection[str],
    origin: Origin,
    name: str,
    namespace: str,
) -> str:
    """How to add the objects beside an app's releases.

    beside: (file, kind). mixed: files that have objects of Flux, too.
    """
    own = [file for file, _ in beside if file not in mixed]
    command = origin.command(f"{name}-more", own[0] if own else "FILE")
    moved = sorted({file for file, _ in beside if file in mixed})
    move = f"move those of {some_of(moved)} to files without objects of Flux, then "
    return (
        "the objects in its folder are not imported: "
        f"{', '.join(sorted({kind for _, kind in beside}))}; "
        f"{move if moved else ''}add each file, such as {command} --namespace {quote(namespace)}"
    )


def _optional_secrets(release: ArgoDocument, tree: RepositoryTree) -> Iterator[str]:
    """Names of Secrets that a release would use if they existed, and that only clusters have."""
    for each in maps(part(release.content, "spec"), "valuesFrom"):
        name, kind = str(each.get("name")), each.get("kind")
        if kind == "Secret" and each.get("optional") and not _held(release, kind, name, tree):
            yield name


def _kubeconfig(release: ArgoDocument) -> str:
    """The Secret with the kubeconfig of the cluster that Flux deploys a release to."""
    named = part(part(part(release.content, "spec"), "kubeConfig"), "secretRef")
    return str(named.get("name") or "")


def _changed(tree: RepositoryTree) -> frozenset[str]:
    """Files that a kustomization includes and changes."""
    found: set[str] = set()
    for folder in sorted(tree.kustomizations):
        if tree.kustomization(folder).keys() & {*CHANGES}:
            found |= tree.closure([folder]).keys()
    return frozenset(found)
