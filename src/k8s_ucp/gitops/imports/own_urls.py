"""The URLs that stand for a repository in what deploys it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from k8s_ucp.gitops.imports.argocd.application_sets import looked_at
from k8s_ucp.gitops.imports.findings import ArgoDocument
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import resolve
from k8s_ucp.gitops.manifests.yaml_text import part


def normal_url(url: str) -> str:
    """A canonical form of a URL: host and path in lower case."""
    found = re.sub(r"^[a-z+]+://", "", url.strip().lower())
    found = re.sub(r"^[^/@]*@", "", found)
    found = re.sub(r"^([^/:]+):(?:\d+/)?", r"\1/", found)
    return found.rstrip("/").removesuffix(".git")


def own_urls(
    tree: RepositoryTree, urls: Collection[str], documents: Collection[ArgoDocument]
) -> frozenset[str]:
    """The URLs that stand for the repository: its own, or if there is none, the most used one.

    urls: those that are known. A fork, or a copy at another host, may name the original.
    """
    sources = [source for each in documents for source in each.sources]
    of_flux = [*_deployed_by_flux(tree, documents)]
    of_argocd = [normal_url(str(each.get("repoURL"))) for each in sources]
    if not set(urls).isdisjoint([*of_argocd, *of_flux]):
        return frozenset(urls)
    named = Counter(
        normal_url(str(source.get("repoURL")))
        for document in documents
        for source in document.sources
        if source.get("repoURL")
        and not source.get("chart")
        and (
            resolve("", str(source.get("path") or "-")) in tree.folders
            or _holds_values(tree, document, source.get("ref"))
        )
    )
    named.update(
        normal_url(url)
        for each in documents
        if each.kind == "ApplicationSet"
        for url in looked_at(each.content, tree)
    )
    named.update(of_flux)
    if urls:
        names = {each.rpartition("/")[2] for each in urls}
        named = Counter({url: n for url, n in named.items() if url.rpartition("/")[2] in names})
    return frozenset([*urls, *(each for each, _ in named.most_common(1))])


def _deployed_by_flux(tree: RepositoryTree, documents: Collection[ArgoDocument]) -> Iterator[str]:
    """For each Kustomization of Flux that deploys a folder which exists here, its source's URL."""
    specs = {(each.kind, each.name): part(each.content, "spec") for each in documents}
    for (kind, _), spec in specs.items():
        source = part(spec, "sourceRef")
        repository = specs.get((str(source.get("kind")), str(source.get("name"))), {})
        folder = resolve("", str(spec.get("path") or ""))
        if kind == "Kustomization" and repository.get("url") and folder and folder in tree.folders:
            yield normal_url(str(repository["url"]))


def _holds_values(tree: RepositoryTree, document: ArgoDocument, ref: object) -> bool:
    """The source with this `ref` provides values files that exist in the tree.

    If an ApplicationSet template fills part of the path, the folder before it is checked.
    """
    for source in document.sources:
        listed = part(source, "helm").get("valueFiles")
        for file in listed if isinstance(listed, list) else ():
            start, slash, path = str(file).partition("/")
            known, filled, _ = path.partition("{{")
            folder = known.rpartition("/")[0]
            if (start, slash) != (f"${ref}", "/"):
                continue
            if tree.has(path) or (filled and folder and folder in tree.folders):
                return True
    return False
