"""What Flux deploys, which Argo CD doesn't: each with the command that adds the same. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from k8s_ucp.gitops.imports.findings import ArgoDocument, RefusedApp, app_name
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import resolve, within
from k8s_ucp.gitops.manifests.yaml_text import part

API = "fluxcd.io/"
_SOURCES = ("HelmRepository", "OCIRepository", "GitRepository")


def read_flux(documents: Collection[ArgoDocument], tree: RepositoryTree) -> Iterator[RefusedApp]:
    """Releases of charts, and folders without such; sources and alerts deploy nothing."""
    ours = [each for each in documents if API in str(each.content.get("apiVersion"))]
    sources = {(each.kind, each.name): each for each in ours if each.kind in _SOURCES}
    whole = {each.name for each in ours if each.kind == "HelmRelease" and _chart(each)}
    for each in ours:
        if each.kind == "HelmRelease" and (_chart(each) or each.name not in whole):
            yield _refused(each, _of_release(each, sources))
        elif each.kind == "Kustomization":
            path = resolve("", str(part(each.content, "spec").get("path") or ""))
            deploys = any(within(other.path, path or "") for other in ours)
            if path in tree.folders and not deploys:
                yield _refused(each, tree.origin.command(app_name(each.name), path or ""))


def _refused(document: ArgoDocument, advice: str) -> RefusedApp:
    return document.refused(f"{document.kind} is of Flux, and Argo CD runs here", advice)


def _chart(release: ArgoDocument) -> Mapping[str, Any]:
    """Empty for a patch, which names none."""
    spec = part(release.content, "spec")
    named = part(part(spec, "chart"), "spec")
    return named if named.get("chart") else part(spec, "chartRef")


def _of_release(release: ArgoDocument, sources: Mapping[tuple[str, str], ArgoDocument]) -> str:
    """The command for the release's chart, as far as the repository names its source."""
    chart = _chart(release)
    named = part(chart, "sourceRef") or chart
    source = sources.get((str(named.get("kind")), str(named.get("name"))))
    spec = part(source.content, "spec") if source else {}
    url, ref = str(spec.get("url") or "").rstrip("/"), part(spec, "ref")
    name, start = str(chart.get("chart") or ""), f"ucp app add {app_name(release.name)}"
    version = str(chart.get("version") or ref.get("tag") or ref.get("semver") or "")
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
