"""Determines the chart of a Flux release, and its source. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    RemoteSource,
    app_name,
    chart_versions,
)
from k8s_ucp.gitops.imports.flux.builds import Build
from k8s_ucp.gitops.imports.helm_values import merge
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import join, resolve
from k8s_ucp.gitops.manifests.yaml_text import first_map, part

OWN = "flux-system"
"""The source that Flux was bootstrapped from: always the repository that is read."""


@dataclass(frozen=True)
class FluxContext:
    """Context for reading a release."""

    tree: RepositoryTree
    same: Callable[[str], bool]
    """Whether a URL is that of this repository."""
    environments: Collection[str]
    build: Build | None = None
    """kustomize, if available."""


class NotAlone(Exception):
    """A release that can't be imported from its own file alone.

    is_repeated: because others have its name. is_patched: because kustomizations change it.
    """

    def __init__(self, reason: str, *, is_repeated: bool = False, is_patched: bool = False) -> None:
        super().__init__(reason)
        self.is_repeated = is_repeated
        self.is_patched = is_patched


def chart_source(
    release: ArgoDocument, source: ArgoDocument | None, context: FluxContext
) -> tuple[RemoteSource | None, str]:
    """(remote source of the chart, its folder there); None: in the tree. Raises NotAlone."""
    spec = part(release.content, "spec")
    if spec.get("postRenderers"):
        raise NotAlone("HelmRelease of Flux uses postRenderers")
    chart, source_spec = chart_of(release), part(source.content, "spec") if source else {}
    if chart.get("valuesFiles") and not _is_local(source, context, chart):
        raise NotAlone("HelmRelease of Flux uses valuesFiles of a chart outside of this repository")
    url, ref = str(source_spec.get("url") or "").rstrip("/"), part(source_spec, "ref")
    name, version = str(chart.get("chart") or ""), _version(chart, ref)
    if _is_local(source, context, chart):
        return None, resolve("", name) or ""
    if source is None or not url:
        raise NotAlone("HelmRelease of Flux: its chart is not declared in this repository")
    if "${" in f"{url}{name}{version}":
        raise NotAlone(
            f"HelmRelease of Flux: its chart {' '.join([url, name, version])} has variables whose "
            "values are not in this repository"
        )
    if source.kind == "GitRepository":
        if ref.get("semver") and not ref.get("commit"):
            raise NotAlone("HelmRelease of Flux: its GitRepository uses ref.semver")
        return RemoteSource(url, git_revision(ref)), resolve("", name) or ""
    if source.kind == "OCIRepository":
        url, _, name = url.rpartition("/")
        if not version:
            raise NotAlone("HelmRelease of Flux: its chart has a digest but no version")
    return RemoteSource(url, version or None, name), ""


def _is_local(source: ArgoDocument | None, context: FluxContext, chart: Mapping[str, Any]) -> bool:
    """The chart is in a folder of the repository that is read."""
    named = part(chart, "sourceRef")
    if (source.kind if source else named.get("kind")) != "GitRepository":
        return False
    url = str(part(source.content, "spec").get("url") or "").rstrip("/") if source else ""
    # An operator of Flux creates the source of the repository itself, without a file.
    is_own = context.same(url) if source else named.get("name") == OWN
    return is_own and resolve("", str(chart.get("chart"))) in context.tree.charts


def values_of_files(release: ArgoDocument, tree: RepositoryTree) -> dict[str, Any]:
    """The values in `valuesFiles` of a local chart, which are paths in the repository.

    Flux uses them instead of the chart's own values.yaml. Raises NotAlone.
    """
    chart = chart_of(release)
    listed = chart.get("valuesFiles")
    files = [resolve("", str(each)) or "" for each in listed] if isinstance(listed, list) else []
    own = join(resolve("", str(chart.get("chart"))) or "", "values.yaml")
    if files and own not in files and tree.has(own):
        raise NotAlone(f"HelmRelease of Flux uses valuesFiles without the chart's own {own}")
    found: dict[str, Any] = {}
    for each in files:
        if not tree.has(each) and not chart.get("ignoreMissingValuesFiles"):
            raise NotAlone(f"HelmRelease of Flux: {each} of its valuesFiles does not exist")
        if each != own and tree.has(each):
            try:
                found = merge(found, first_map(tree.read(each), each))
            except UsageError as error:
                raise NotAlone(f"HelmRelease of Flux: {error.message}") from error
    return found


def git_revision(ref: Mapping[str, Any]) -> str | None:
    """The commit, tag or branch of a GitRepository's `ref`, in the order that Flux prefers them.

    Source: https://fluxcd.io/flux/components/source/gitrepositories/#reference
    """
    found = ref.get("commit") or ref.get("tag") or ref.get("branch")
    return str(found) if found else None


def versions_of(
    environments: Sequence[str | None], charts: Sequence[tuple[RemoteSource | None, str]]
) -> dict[str, str | None]:
    """{environment: version of the chart} if they differ. Raises NotAlone."""
    if all(each == charts[0] for each in charts):
        return {}
    remotes = [remote for remote, _ in charts]
    found = chart_versions(zip(environments, remotes, strict=True))
    if found is None:
        raise NotAlone("HelmRelease of Flux has different charts per environment")
    return found


def chart_of(release: ArgoDocument) -> Mapping[str, Any]:
    """The chart of a release; empty for a patch, which has none."""
    spec = part(release.content, "spec")
    named = part(part(spec, "chart"), "spec")
    return named if named.get("chart") else part(spec, "chartRef")


def _version(chart: Mapping[str, Any], ref: Mapping[str, Any]) -> str:
    found = str(chart.get("version") or ref.get("tag") or ref.get("semver") or "")
    return "" if found == "*" else found


def source_of(release: ArgoDocument, sources: Sequence[ArgoDocument]) -> ArgoDocument | None:
    """The source that a release references; if the name is ambiguous, the one in its folder."""
    chart = chart_of(release)
    named = part(chart, "sourceRef") or chart
    found = [
        each for each in sources if (each.kind, each.name) == (named.get("kind"), named.get("name"))
    ]
    folder = release.path.rpartition("/")[0]
    near = [each for each in found if each.path.rpartition("/")[0] == folder]
    if len(found) == 1 or not near:
        return found[0] if len({str(each.content.get("spec")) for each in found}) == 1 else None
    return near[0]


def command_of_release(release: ArgoDocument, source: ArgoDocument | None) -> str:
    """The command that adds the release's chart, as far as the repository defines its source."""
    chart = chart_of(release)
    spec = part(source.content, "spec") if source else {}
    url, ref = str(spec.get("url") or "").rstrip("/"), part(spec, "ref")
    app, name = app_name(release.name), str(chart.get("chart") or "")
    if source is None or not url:
        return f"ucp app add {app} URL|DIR, with the chart that it names"
    if source.kind == "GitRepository":
        command = RemoteSource(url, git_revision(ref)).command(app, name.removeprefix("./"))
    else:
        if source.kind == "OCIRepository":
            url, _, name = url.rpartition("/")
        version = _version(chart, ref)
        exact = version.lstrip("v").replace(".", "").isdigit()
        command = RemoteSource(url, version if exact else None, name).command(app)
    if part(part(release.content, "spec"), "values"):
        command += " --values FILE (with the `values` of the HelmRelease)"
    if part(release.content, "spec").get("postRenderers"):
        command += ", which lacks what its postRenderers change"
    return command
