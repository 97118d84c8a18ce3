"""What Flux deploys, which Argo CD doesn't: releases of charts as apps, and for all else what to
type instead. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    DiscoveredApp,
    RefusedApp,
    RemoteSource,
    app_name,
    in_path,
)
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import manifest_files
from k8s_ucp.gitops.manifests.reachable import resolve, within
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, part

API = "fluxcd.io/"
_SOURCES = ("HelmRepository", "OCIRepository", "GitRepository")
_CHANGED = (
    *("patches", "patchesStrategicMerge", "patchesJson6902", "replacements", "components"),
    *("transformers", "namePrefix", "nameSuffix"),
)
"""Keys of a kustomization by which a release is another one than its file says."""
_VARIABLE = re.compile(r"\$\{[^{}]*\}")
_KNOWN = frozenset(["Namespace", "Application", "ApplicationSet", "AppProject"])
"""Objects that are made anyway, or read for themselves."""


@dataclass(frozen=True)
class FluxContext:
    """What the reading of a release looks at."""

    tree: RepositoryTree
    same: Callable[[str], bool]
    """An address is this repository."""
    environments: Collection[str]


def read_flux(
    declared: Collection[ArgoDocument], around: FluxContext
) -> Iterator[DiscoveredApp | RefusedApp]:
    """Releases of charts, and folders without such; sources and alerts deploy nothing."""
    tree = around.tree
    ours = [each for each in declared if API in str(each.content.get("apiVersion"))]
    sources = [each for each in ours if each.kind in _SOURCES]
    releases: dict[str, list[ArgoDocument]] = {}
    for each in ours:
        if each.kind == "HelmRelease":
            releases.setdefault(each.name, []).append(each)
        elif each.kind == "Kustomization":
            path = resolve("", str(part(each.content, "spec").get("path") or ""))
            deploys = any(within(other.path, path or "") for other in ours)
            if path in tree.folders and not deploys:
                command = tree.origin.command(app_name(each.name), path or "")
                yield replace(each.refused(_FLUX, command), folder=path)
    changed = _changed(tree) if releases else frozenset()
    for same_name in releases.values():
        whole = [each for each in same_name if _chart(each)]
        try:
            yield _release(same_name, sources, changed, around)
        except _NotAlone as error:
            for each in whole or same_name:
                yield each.refused(str(error), _of_release(each, _source(each, sources)))


_FLUX = "Kustomization of Flux is not supported (the topology uses Argo CD)"


class _NotAlone(Exception):
    """A release that is no app by what its file says alone."""


def _release(
    releases: Sequence[ArgoDocument],
    sources: Sequence[ArgoDocument],
    changed: Collection[str],
    around: FluxContext,
) -> DiscoveredApp:
    """One app of a release, or of those of one name that environments have. Raises _NotAlone."""
    first = releases[0]
    places = [in_path(each.path, around.environments) for each in releases]
    if any(each.path in changed for each in releases) or not all(map(_chart, releases)):
        raise _NotAlone("HelmRelease of Flux is patched by kustomizations")
    if len(releases) > 1 and (None in places or len({*places}) < len(places)):
        raise _NotAlone("HelmRelease of Flux is declared several times under this name")
    found = [_chart_of(each, _source(each, sources), around) for each in releases]
    if any(each != found[0] for each in found):
        raise _NotAlone("HelmRelease of Flux has different versions per environment")
    remote, path = found[0]
    values: dict[str, str | bytes] = {}
    for environment, each in zip(places, releases, strict=True):
        if said := part(part(each.content, "spec"), "values"):
            values[environment or ""] = dump_all([said]).encode()
    spec = part(first.content, "spec")
    metadata = part(first.content, "metadata")
    given = spec.get("targetNamespace") or metadata.get("namespace")
    namespace = str(given) if given else _target(first, around)
    return DiscoveredApp(
        name=app_name(first.name),
        form="helm",
        where=first.where,
        path=path,
        values=values,
        environments=tuple(sorted(each for each in places if each)),
        namespace=namespace,
        remote=remote,
        notes=tuple(_notes(releases, values, namespace, around.tree)),
    )


def _target(release: ArgoDocument, around: FluxContext) -> str | None:
    """The namespace that the nearest Kustomization of Flux gives to what lies below its path."""
    found: dict[str, str] = {}
    for each in around.tree.documents_of_argocd:
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
) -> Iterator[str]:
    text = "".join(str(each) for each in values.values())
    if names := sorted({*_VARIABLE.findall(text)}):
        yield f"Flux would fill {', '.join(names[:5])} in its values: write what they stand for"
    beside = [one for each in releases for one in _beside(each, tree)]
    if beside:
        name = app_name(releases[0].name)
        command = tree.origin.command(f"{name}-more", beside[0][0])
        yield (
            "the objects beside it are not imported: "
            f"{', '.join(sorted({kind for _, kind in beside}))}; "
            f"add each file, such as {command} --namespace {namespace or name}"
        )
    name, release = releases[0].name, part(releases[0].content, "spec").get("releaseName")
    if release and release != app_name(name):
        yield f"its release {release} will be called {app_name(name)}"


def _beside(release: ArgoDocument, tree: RepositoryTree) -> Iterator[tuple[str, str]]:
    """(file, kind) of the objects in the release's folder that are not Flux's."""
    folder = release.path.rpartition("/")[0]
    files = {each: tree.read(each) for each in tree.names if each.rpartition("/")[0] == folder}
    for name, content in files.items():
        try:
            named = {name.rpartition("/")[2]: content}
            found = documents(content, name) if manifest_files(named) else []
        except UsageError:
            continue
        for each in found:
            kind = str(each.get("kind")) if isinstance(each, dict) else ""
            if kind and kind not in _KNOWN and API not in str(each.get("apiVersion")):
                yield name, kind


def _changed(tree: RepositoryTree) -> frozenset[str]:
    """Files that a kustomization takes in and changes."""
    found: set[str] = set()
    for folder in sorted(tree.kustomizations):
        if tree.kustomization(folder).keys() & {*_CHANGED}:
            found |= tree.closure([folder]).keys()
    return frozenset(found)


def _chart_of(
    release: ArgoDocument, source: ArgoDocument | None, around: FluxContext
) -> tuple[RemoteSource | None, str]:
    """(where the chart lies, its folder there); None: in the tree. Raises _NotAlone."""
    spec = part(release.content, "spec")
    for key in ("valuesFrom", "postRenderers", "kubeConfig"):
        if spec.get(key):
            raise _NotAlone(f"HelmRelease of Flux uses {key}")
    chart, said = _chart(release), part(source.content, "spec") if source else {}
    if chart.get("valuesFiles"):
        raise _NotAlone("HelmRelease of Flux uses valuesFiles")
    url, ref = str(said.get("url") or "").rstrip("/"), part(said, "ref")
    name, version = str(chart.get("chart") or ""), _version(chart, ref)
    if source is None or not url or "${" in f"{url}{name}{version}":
        raise _NotAlone("HelmRelease of Flux: its chart is not declared in this repository")
    if source.kind == "GitRepository":
        path = resolve("", name) or ""
        if around.same(url) and path in around.tree.charts:
            return None, path
        return RemoteSource(url, str(ref.get("tag") or ref.get("branch") or "") or None), path
    if source.kind == "OCIRepository":
        url, _, name = url.rpartition("/")
        if not version:
            raise _NotAlone("HelmRelease of Flux: its chart has a digest but no version")
    return RemoteSource(url, version or None, name), ""


def _version(chart: Mapping[str, Any], ref: Mapping[str, Any]) -> str:
    found = str(chart.get("version") or ref.get("tag") or ref.get("semver") or "")
    return "" if found == "*" else found


def _chart(release: ArgoDocument) -> Mapping[str, Any]:
    """Empty for a patch, which names none."""
    spec = part(release.content, "spec")
    named = part(part(spec, "chart"), "spec")
    return named if named.get("chart") else part(spec, "chartRef")


def _source(release: ArgoDocument, sources: Sequence[ArgoDocument]) -> ArgoDocument | None:
    """The one that a release names: of several of one name that in its folder."""
    chart = _chart(release)
    named = part(chart, "sourceRef") or chart
    found = [
        each for each in sources if (each.kind, each.name) == (named.get("kind"), named.get("name"))
    ]
    folder = release.path.rpartition("/")[0]
    near = [each for each in found if each.path.rpartition("/")[0] == folder]
    if len(found) == 1 or not near:
        return found[0] if len({str(each.content.get("spec")) for each in found}) == 1 else None
    return near[0]


def _of_release(release: ArgoDocument, source: ArgoDocument | None) -> str:
    """The command for the release's chart, as far as the repository names its source."""
    chart = _chart(release)
    spec = part(source.content, "spec") if source else {}
    url, ref = str(spec.get("url") or "").rstrip("/"), part(spec, "ref")
    name, start = str(chart.get("chart") or ""), f"ucp app add {app_name(release.name)}"
    version = _version(chart, ref)
    if not url:
        return f"{start} URL|DIR, with the chart that it names"
    if source and source.kind == "GitRepository":
        branch = ref.get("tag") or ref.get("branch")
        command = f"{start} {url} --path {name.removeprefix('./')}"
        command += f" --ref {branch}" if branch else ""
    else:
        oci = url.startswith("oci://")
        place = f"{url}/{name}".rstrip("/") if oci else f"{url} --chart {name}"
        exact = version.lstrip("v").replace(".", "").isdigit()
        command = f"{start} {place}" + (f" --version {version}" if exact else "")
    if part(part(release.content, "spec"), "values"):
        command += " --values FILE (with the `values` of the HelmRelease)"
    return command
