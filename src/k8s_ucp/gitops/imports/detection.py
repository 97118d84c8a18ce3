"""Finds all apps of a GitOps repository: declared by Applications, or visible in its folders.

Pure, except for helm, kustomize and other repositories, which are passed in.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from k8s_ucp.gitops.imports.app_names import with_distinct_names
from k8s_ucp.gitops.imports.argocd.application_drafts import DiscoveryContext, Fetch
from k8s_ucp.gitops.imports.argocd.application_sets import (
    FillGo,
    SetContext,
    excluded_folders,
)
from k8s_ucp.gitops.imports.argocd.applications import read_applications
from k8s_ucp.gitops.imports.argocd.declared import (
    Render,
    expand_declared,
    is_root,
    read_declared,
)
from k8s_ucp.gitops.imports.findings import (
    NAMES,
    ArgoDocument,
    DiscoveredApp,
    Discovery,
    RefusedApp,
    free_name,
    named_by,
)
from k8s_ucp.gitops.imports.flux.builds import Build
from k8s_ucp.gitops.imports.flux.charts import FluxContext
from k8s_ucp.gitops.imports.flux.folders import as_deployed
from k8s_ucp.gitops.imports.flux.releases import own_kustomizations, read_flux
from k8s_ucp.gitops.imports.layouts.folders import find_layouts
from k8s_ucp.gitops.imports.layouts.folders_of_tests import (
    folders_of_tests,
    tests_not_searched,
    words_of_tests,
)
from k8s_ucp.gitops.imports.layouts.jsonnet import folders_of_libraries
from k8s_ucp.gitops.imports.layouts.variants import beside_bases
from k8s_ucp.gitops.imports.own_urls import normal_url, own_urls
from k8s_ucp.gitops.imports.trees import LOCAL, Origin, RepositoryTree
from k8s_ucp.gitops.manifests.build_charts import SETTINGS
from k8s_ucp.gitops.manifests.other_tools import CUE, FLEET, find_tools, is_of_tool
from k8s_ucp.gitops.manifests.reachable import FolderTree, join, within

_MOST_ALONE = 3
"""Maximum number of files of one tool that are listed with words of their own."""


@dataclass(frozen=True)
class ImportTools:
    """What reads more than the files of the repository; None: not available."""

    render: Render | None = None
    """helm, for charts that contain Applications."""
    build: Build | None = None
    """kustomize, for Flux."""
    fill_go: FillGo | None = None
    """helm, for the Go templates of ApplicationSets."""
    fetch: Fetch | None = None
    """Other repositories, for values files in them."""


NO_TOOLS = ImportTools()


def detect(
    folder_tree: FolderTree,
    *,
    title: str,
    urls: Iterable[str] = (),
    environments: Iterable[str] = (),
    origin: Origin | None = None,
    clusters: Sequence[str] = (),
    tools: ImportTools = NO_TOOLS,
) -> Discovery:
    """Find the apps of a repository.

    title: name for an app that is the whole repository. urls: URLs of the repository; if there are
    none, a URL is assumed to be its own if a path used with it exists here. environments: names to
    recognize in addition to the common ones. origin: its revision, and for suggested commands.
    clusters: environments that a generator over all clusters yields.
    """
    tree = RepositoryTree(folder_tree, origin)
    named = frozenset(environments)
    words = words_of_tests(tree, NAMES | named) - named
    request = _Request(
        title=title,
        urls=frozenset(map(normal_url, urls)),
        named=named,
        environments=NAMES | named,
        of_folders=(folders := (NAMES | named) - words) | beside_bases(tree, folders),
        revision=origin.revision if origin else None,
        clusters=clusters,
        tools=tools,
    )
    tests = folders_of_tests(tree, words)
    tree.pass_over(tests | folders_of_libraries(tree))
    found = _search(tree, request)
    if tests and not (found.findings or found.refusals):
        return _search(RepositoryTree(folder_tree, origin), request)
    return replace(found, refusals=(*found.refusals, *tests_not_searched(tree, tests)))


@dataclass(frozen=True)
class _Request:
    """The arguments of `detect`, and the words in them that are environments."""

    title: str
    urls: Collection[str]
    named: Collection[str]
    """By the user."""
    environments: Collection[str]
    of_folders: Collection[str]
    """Those that folders can have."""
    revision: str | None
    clusters: Sequence[str]
    tools: ImportTools


def _search(tree: RepositoryTree, request: _Request) -> Discovery:
    known, tools = request.environments, request.tools
    documents, refusals = read_declared(tree, known, tools.render)
    in_files = [each for each, _ in documents]
    own = own_urls(tree, request.urls, in_files)

    def same(url: str) -> bool:
        return url == LOCAL or normal_url(url) in own or not (url or request.urls)

    context = DiscoveryContext(tree, same, known, request.revision, tools.fetch)
    of_sets = SetContext(tree, same, request.clusters, known, fill_go=tools.fill_go)
    declared, more = expand_declared(documents, of_sets)
    refusals += more
    refusals += _invalid_files(tree, request.title)
    flux = FluxContext(tree, same, known, tools.build)
    of_flux = list(read_flux(in_files, flux))
    refusals += [each for each in of_flux if isinstance(each, RefusedApp)]
    roots = [each for each, _ in declared if is_root(tree, same, each)]
    apps = [each for each in declared if not any(each[0] is root for root in roots)]
    findings, more = read_applications(apps, context)
    refusals += more
    refusals += [
        each.refused("it contains Applications, which are listed separately", "none")
        for each in roots
    ]
    releases = [each for each in of_flux if isinstance(each, DiscoveredApp)]
    claimed = {path for each in findings + releases if not each.remote for path in folders_of(each)}
    # What is beside the Applications in the folder of a root is listed.
    claimed |= {path for each, _ in apps for path in each.folders}
    # Objects beside a Flux release are reported together with it.
    claimed |= {each.where.partition(":")[0].rpartition("/")[0] for each in releases}
    laid, more = find_layouts(tree, request.title, known, request.of_folders, request.named)
    deploying = own_kustomizations(in_files, flux)
    laid = [as_deployed(each, deploying, tree) for each in laid]
    whole = _whole_folders(tree, findings)
    findings = [*(_with_base(each, laid) for each in findings), *releases]
    laid = [each for each in laid if not _is_taken(each, claimed, whole)]
    laid, excluded = _without_excluded(laid, of_sets, in_files)
    findings += [_with_settings(tree, each) for each in laid]
    refusals += excluded
    refusals += [each for each in more if each.where not in claimed]
    refusals = _without_found(refusals, findings)
    findings = with_distinct_names(findings)
    refusals += _other_tools(tree, request.title, findings, nothing=not (findings or refusals))
    return _discovery([_with_fleet(tree, each) for each in findings], refusals, own, request.urls)


def _invalid_files(tree: RepositoryTree, title: str) -> Iterator[RefusedApp]:
    for path, error in tree.invalid_files_of_argocd.items():
        name = named_by(path.rpartition(".")[0], title)[1]
        yield RefusedApp(name, path, error.message, error.next or f"correct {path}")


def _without_excluded(
    laid: Iterable[DiscoveredApp], context: SetContext, documents: Iterable[ArgoDocument]
) -> tuple[list[DiscoveredApp], list[RefusedApp]]:
    """The apps of folders that no ApplicationSet excludes, and refusals of the others."""
    excluded = {
        folder: each.name
        for each in documents
        if each.kind == "ApplicationSet"
        for folder in excluded_folders(each.content, context)
    }
    found: list[DiscoveredApp] = []
    refusals = []
    for each in laid:
        folders = folders_of(each)
        by = {next((by for at, by in excluded.items() if within(one, at)), "") for one in folders}
        if "" in by or not by:
            found.append(each)
            continue
        reason = f"the ApplicationSet {min(by)} excludes its folder"
        advice = context.tree.origin.command(each.name, posixpath.commonpath(folders))
        refusals.append(RefusedApp(each.name, each.where, reason, advice))
    return found, refusals


def _is_taken(laid: DiscoveredApp, claimed: Collection[str], whole: Collection[str]) -> bool:
    """Whether something declares or contains an app that its folders show.

    claimed: folders that something declares. whole: folders that are one app with all below them.
    """
    folders = folders_of(laid)
    return not {*claimed}.isdisjoint(folders) or any(
        within(path, each) for path in folders for each in whole
    )


def _without_found(
    refusals: Iterable[RefusedApp], findings: Iterable[DiscoveredApp]
) -> list[RefusedApp]:
    """The refusals, each once, without those of folders from which an app was found."""
    taken = {path for each in findings if not each.remote for path in folders_of(each)}
    left = (
        each
        for each in refusals
        if each.folder is None or not any(within(path, each.folder) for path in taken)
    )
    return list(dict.fromkeys(left))


def _discovery(
    findings: Iterable[DiscoveredApp],
    refusals: Iterable[RefusedApp],
    own: frozenset[str],
    urls: Collection[str],
) -> Discovery:
    """The sorted result. own: URLs that stand for the repository. urls: those that are known."""

    def key(each: DiscoveredApp | RefusedApp) -> tuple[str, str]:
        return each.name, each.where

    return Discovery(
        tuple(sorted(findings, key=key)),
        tuple(sorted(refusals, key=key)),
        tuple(
            f"{each} is taken for this repository: what deploys its folders names it"
            for each in sorted(own.difference(urls) if urls else ())
        ),
    )


def _whole_folders(tree: RepositoryTree, findings: Iterable[DiscoveredApp]) -> set[str]:
    """Folders of Applications that have plain manifests, which may be in their subfolders."""
    return {
        each.path
        for each in findings
        if each.path and not each.remote and each.path not in tree.kustomizations | tree.charts
    }


def folders_of(finding: DiscoveredApp) -> list[str]:
    """Folders of the tree that an app consists of."""
    return [*finding.overlays.values(), *([] if finding.path is None else [finding.path])]


def _other_tools(
    tree: RepositoryTree, title: str, findings: list[DiscoveredApp], *, nothing: bool
) -> list[RefusedApp]:
    """Files of unsupported deployment tools.

    nothing: nothing else was found, so files that usually only accompany manifests are listed too.
    """
    folders = [path for each in findings if not each.remote for path in folders_of(each)]
    files = {
        each: tree.read(each)
        for each in tree.names
        if is_of_tool(each) and tree.is_searched(each.rpartition("/")[0])
    }
    tools = find_tools(files)
    counted = Counter(each.name for each in tools)
    found = []
    seen: dict[str, set[str]] = {}
    for tool in tools:
        folder = tool.folder
        known = seen.setdefault(folder, set())
        if tool.name in known or (tool.name == CUE and known):
            continue
        known.add(tool.name)
        deploys_found = any(within(other, folder) for other in folders)
        if tree.in_chart(tool.path) or not (nothing or tool.deploys):
            continue
        if not (tool.name == FLEET and deploys_found):
            name = named_by(folder, title)[1]
            reason, advice = tool.words, tool.advice(free_name(name))
            if counted[tool.name] > _MOST_ALONE and not tool.deploys:
                # The same words for all of them, so that they are listed in one line.
                reason, advice = f"files of {tool.name} are not read", tool.advice()
            found.append(RefusedApp(name, tool.path, reason, advice))
    return found


def _with_fleet(tree: RepositoryTree, finding: DiscoveredApp) -> DiscoveredApp:
    """Add a note if a Fleet file in the app's folder or a parent folder configures it."""
    named = [each for each in tree.names if each.rpartition("/")[2] in ("fleet.yaml", "fleet.yml")]
    files = {each.path for each in find_tools({each: tree.read(each) for each in named})}
    above = (
        each
        for each in sorted(files, reverse=True)
        if any(within(folder, each.rpartition("/")[0]) for folder in folders_of(finding))
    )
    fleet_file = None if finding.remote else next(above, None)
    if fleet_file is None:
        return finding
    note = (
        f"{fleet_file} of {FLEET} is not supported: its namespace, values and targets are ignored"
    )
    return replace(finding, notes=(*finding.notes, note))


def _with_settings(tree: RepositoryTree, finding: DiscoveredApp) -> DiscoveredApp:
    """Add a note if Argo CD's settings in a folder that no Application names are left out."""
    files = [
        each for each in (join(path, SETTINGS) for path in folders_of(finding)) if tree.read(each)
    ]
    notes = (
        f"{each} is not imported: write what it sets to its values or kustomization"
        for each in files
    )
    return replace(finding, notes=(*finding.notes, *notes))


def _with_base(finding: DiscoveredApp, laid: list[DiscoveredApp]) -> DiscoveredApp:
    """Add the base found in the folder layout, for environments without an overlay."""
    if finding.path is not None or finding.remote:
        return finding
    ours = set(finding.overlays.values())
    for each in laid:
        if ours & set(each.overlays.values()) and each.path is not None:
            return replace(finding, path=each.path)
    return finding
