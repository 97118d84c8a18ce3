"""Finds all apps of a GitOps repository: declared by Applications, or visible in its folders.

Pure, except for helm, kustomize and other repositories, which are passed in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.app_names import with_distinct_names
from k8s_ucp.gitops.imports.application_drafts import DiscoveryContext, Fetch
from k8s_ucp.gitops.imports.application_sets import FillGo, SetContext, expand, looked_at
from k8s_ucp.gitops.imports.application_values import values_for_applications
from k8s_ucp.gitops.imports.applications import read_applications
from k8s_ucp.gitops.imports.findings import (
    NAMES,
    ArgoDocument,
    DiscoveredApp,
    Discovery,
    NotImportable,
    RefusedApp,
    in_path,
    in_text,
    named_by,
    sources_of,
)
from k8s_ucp.gitops.imports.flux.builds import Build
from k8s_ucp.gitops.imports.flux.charts import FluxContext
from k8s_ucp.gitops.imports.flux.folders import as_deployed
from k8s_ucp.gitops.imports.flux.releases import own_kustomizations, read_flux
from k8s_ucp.gitops.imports.layouts.folders import find_layouts, values_of
from k8s_ucp.gitops.imports.layouts.folders_of_tests import (
    folders_of_tests,
    tests_not_searched,
    words_of_tests,
)
from k8s_ucp.gitops.imports.trees import LOCAL, MOVING, Origin, RepositoryTree, read_documents
from k8s_ucp.gitops.manifests.other_tools import CUE, FLEET, find_tools, is_of_tool
from k8s_ucp.gitops.manifests.reachable import FolderTree, join, resolve, within
from k8s_ucp.gitops.manifests.yaml_text import part

Render = Callable[[str, "str | bytes | None"], str]
"""(folder of a chart in the tree, one of its values files, or values) to the rendered text."""

_Declared = tuple[ArgoDocument, "str | None"]
"""A document and its environment, if something other than the document determines it."""
_MOST_ALONE = 3
"""Maximum number of files of one tool that are listed with words of their own."""
_ARGO = "argoproj.io/"
_ABOUT_APPS = frozenset(["Application", "ApplicationSet", "AppProject", "Namespace"])
"""Kinds that are read separately, or created for each app."""


def detect(
    place: FolderTree,
    *,
    title: str,
    urls: Iterable[str] = (),
    environments: Iterable[str] = (),
    revision: str | None = None,
    render: Render | None = None,
    origin: Origin | None = None,
    fetch: Fetch | None = None,
    clusters: Sequence[str] = (),
    build: Build | None = None,
    fill_go: FillGo | None = None,
) -> Discovery:
    """Find the apps of a repository.

    title: name for an app that is the whole repository. urls: URLs of the repository; if there are
    none, a URL is assumed to be its own if a path used with it exists here. environments: names to
    recognise in addition to the common ones. render: helm, if available. origin: for suggested
    commands. fetch: other repositories, for values files in them. clusters: environments that a
    generator over all clusters yields. build: kustomize, if available. fill_go: fills Go templates
    with helm, if available.
    """
    tree = RepositoryTree(place, origin)
    named = frozenset(environments)
    words = words_of_tests(tree, NAMES | named) - named
    request = _Request(
        title,
        frozenset(map(normal_url, urls)),
        named,
        NAMES | named,
        (NAMES | named) - words,
        revision,
        render,
        fetch,
        clusters,
        build,
        fill_go,
    )
    tests = folders_of_tests(tree, words)
    tree.pass_over(tests)
    found = _search(tree, request)
    if tests and not (found.findings or found.refusals):
        return _search(RepositoryTree(place, origin), request)
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
    render: Render | None
    fetch: Fetch | None
    clusters: Sequence[str]
    build: Build | None
    fill_go: FillGo | None


def _search(tree: RepositoryTree, request: _Request) -> Discovery:
    title, known = request.title, request.environments
    documents, refusals = _documents(tree, known, request.render)
    own = _own_urls(tree, request.urls, [each for each, _ in documents])

    def same(url: str) -> bool:
        return url == LOCAL or normal_url(url) in own or not (url or request.urls)

    around = DiscoveryContext(tree, same, known, request.revision, request.fetch)
    of_sets = SetContext(tree, same, request.clusters, known, fill_go=request.fill_go)
    declared, more = _declared(documents, of_sets)
    refusals += more
    flux = FluxContext(tree, same, known, request.build)
    in_files = [each for each, _ in documents]
    of_flux = list(read_flux(in_files, flux))
    refusals += [each for each in of_flux if isinstance(each, RefusedApp)]
    roots = [each for each, _ in declared if _is_root(tree, same, each)]
    refusals += [
        each.refused("it contains Applications, which are listed separately", "none")
        for each in roots
    ]
    apps = [each for each in declared if not any(each[0] is root for root in roots)]
    findings, more = read_applications(apps, around)
    refusals += more
    claimed = {path for each in findings if not each.remote for path in folders_of(each)}
    claimed |= {path for each, _ in declared for path in _paths(each)}
    # Objects beside a Flux release are reported together with it.
    releases = [each for each in of_flux if isinstance(each, DiscoveredApp)]
    claimed |= {each.where.partition(":")[0].rpartition("/")[0] for each in releases}
    claimed |= {path for each in releases if not each.remote for path in folders_of(each)}
    laid, more = find_layouts(tree, title, known, request.of_folders, request.named)
    deploying = own_kustomizations(in_files, flux)
    laid = [as_deployed(each, deploying, tree) for each in laid]
    whole = _whole_folders(tree, findings)
    findings = [*(_with_base(each, laid) for each in findings), *releases]
    findings += [
        each
        for each in laid
        if not claimed & set(folders_of(each))
        and not any(within(path, one) for path in folders_of(each) for one in whole)
    ]
    refusals += [each for each in more if each.where not in claimed]
    taken = {path for each in findings if not each.remote for path in folders_of(each)}
    refusals = [
        each
        for each in refusals
        if each.folder is None or not any(within(path, each.folder) for path in taken)
    ]
    findings = with_distinct_names(findings)
    refusals = list(dict.fromkeys(refusals))
    refusals += _other_tools(tree, title, findings, nothing=not (findings or refusals))
    findings = [_with_fleet(tree, each) for each in findings]

    def key(each: DiscoveredApp | RefusedApp) -> tuple[str, str]:
        return each.name, each.where

    return Discovery(
        tuple(sorted(findings, key=key)),
        tuple(sorted(refusals, key=key)),
        tuple(
            f"{each} is taken for this repository: its Applications name it"
            for each in sorted(own.difference(request.urls) if request.urls else ())
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


def normal_url(url: str) -> str:
    """A canonical form of a URL: host and path in lower case."""
    found = re.sub(r"^[a-z+]+://", "", url.strip().lower())
    found = re.sub(r"^[^/@]*@", "", found)
    found = re.sub(r"^([^/:]+):(?:\d+/)?", r"\1/", found)
    return found.rstrip("/").removesuffix(".git")


def _own_urls(
    tree: RepositoryTree, urls: Collection[str], documents: Collection[ArgoDocument]
) -> frozenset[str]:
    """The URLs that stand for the repository: its own, or if there is none, the most used one.

    urls: those that are known. A fork, or a copy at another host, may name the original.
    """
    sources = [source for each in documents for source in _sources(each)]
    if any(normal_url(str(each.get("repoURL"))) in urls for each in sources):
        return frozenset(urls)
    named = Counter(
        normal_url(str(source.get("repoURL")))
        for each in documents
        for source in _sources(each)
        if source.get("repoURL")
        and not source.get("chart")
        and (
            resolve("", str(source.get("path") or "-")) in tree.folders
            or _holds_values(tree, each, source.get("ref"))
        )
    )
    named.update(
        normal_url(url)
        for each in documents
        if each.kind == "ApplicationSet"
        for url in looked_at(each.content, tree)
    )
    if urls:
        names = {each.rpartition("/")[2] for each in urls}
        named = Counter({url: n for url, n in named.items() if url.rpartition("/")[2] in names})
    return frozenset([*urls, *(each for each, _ in named.most_common(1))])


def _holds_values(tree: RepositoryTree, document: ArgoDocument, ref: object) -> bool:
    """The source with this `ref` provides values files that exist in the tree.

    If an ApplicationSet template fills part of the path, the folder before it is checked.
    """
    for source in _sources(document):
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


def _sources(document: ArgoDocument) -> list[dict[str, object]]:
    content = document.content
    if document.kind == "ApplicationSet":
        content = part(part(content, "spec"), "template")
    return [dict(each) for each in sources_of(content)]


def _path(document: ArgoDocument) -> str | None:
    found = [each.get("path") for each in _sources(document)]
    return resolve("", str(found[0])) if len(found) == 1 and found[0] is not None else None


def _paths(document: ArgoDocument) -> Iterator[str]:
    """Folders that an Application renders, in any repository."""
    for each in _sources(document):
        if each.get("path") is not None:
            yield str(resolve("", str(each["path"])))


def _documents(
    tree: RepositoryTree, known: Collection[str], render: Render | None
) -> tuple[list[_Declared], list[RefusedApp]]:
    """Documents in files, and those that charts render."""
    found: list[_Declared] = [(each, None) for each in tree.documents_of_argocd]
    refusals: list[RefusedApp] = []
    for chart in sorted(tree.app_charts):
        try:
            found += _rendered(tree, chart, known, render)
        except NotImportable as error:
            refusals.append(error.refusal(chart or "chart", join(chart, "Chart.yaml")))
    return found, refusals


def _declared(
    documents: list[_Declared], around: SetContext
) -> tuple[list[_Declared], list[RefusedApp]]:
    """The Applications, including those of ApplicationSets."""
    found: list[_Declared] = []
    refusals: list[RefusedApp] = []
    for document, environment in documents:
        version = str(document.content.get("apiVersion"))
        if not version.startswith(_ARGO):
            continue
        if document.kind == "Application":
            found.append((document, environment))
        elif document.kind == "ApplicationSet":
            try:
                found += [
                    (each.document, environment or each.environment)
                    for each in expand(document, around)
                ]
            except NotImportable as error:
                refusals.append(error.refusal(document.name, document.where))
        elif document.kind == "AppProject":
            refusals.append(
                document.refused(
                    "each app gets its own AppProject",
                    "none; `clusterKinds` and `namespaces` of the app say what it may do",
                )
            )
    return found, refusals


def _rendered(
    tree: RepositoryTree, chart: str, known: Collection[str], render: Render | None
) -> list[_Declared]:
    """Applications that a chart renders, for each environment for which it has values."""
    where = join(chart, "templates")
    if render is None:
        raise NotImportable(
            "its templates are Applications, and helm is not available",
            "connect to the network, so that helm can be installed, and run the command again",
        )
    values = _given(tree, chart, known)
    if not values:
        values.update(values_of(tree, chart, known)[0])
    found: list[_Declared] = []
    for environment, file in values.items() or ((None, None),):
        try:
            text = render(chart, file)
        except UcpError as error:
            raise NotImportable(
                f"its templates are Applications, and helm can't render them: {error.message}",
                "correct its values",
            ) from error
        found += [
            (replace(each, path=where), environment)
            for each in read_documents(text.encode(), where)
        ]
    return found


def _given(
    tree: RepositoryTree, chart: str, known: Collection[str]
) -> dict[str | None, str | bytes]:
    """{environment: values} that Applications pass to a chart; empty if none does.

    Raises NotImportable.
    """
    found: dict[str | None, str | bytes] = {}
    for each in tree.documents_of_argocd:
        if each.kind == "Application" and _path(each) == chart:
            [source] = _sources(each)
            if (values := values_for_applications(tree, chart, part(source, "helm"))) is not None:
                found[in_text(each.name, known) or in_path(each.path, known)] = values
    return found


def _is_root(tree: RepositoryTree, same: Callable[[str], bool], document: ArgoDocument) -> bool:
    """An Application whose folder contains Applications (app of apps).

    If its URL is another one but the subfolder exists here, this repository is a copy of that one.
    """
    path = _path(document)
    if document.kind == "Application" and path is None:
        return _only_declares(tree, document)
    if document.kind != "Application" or path is None:
        return False
    [source] = _sources(document)
    if not path and not same(str(source.get("repoURL") or "")):
        return False
    if not path and str(source.get("targetRevision") or "") not in MOVING:
        # A generated branch, such as one with rendered manifests of an environment.
        return False
    if path in tree.app_charts:
        return True
    used = tree.closure([path]) if path in tree.kustomizations else ()
    holds = any(
        within(each.path, path) or each.path in used
        for each in tree.documents_of_argocd
        if each is not document
    )
    return holds and path not in tree.charts


def _only_declares(tree: RepositoryTree, document: ArgoDocument) -> bool:
    """An Application with several folders, of which one has Applications, and none has an app."""
    folders = [*_paths(document)]
    files = [name for each in folders if each in tree.folders for name in tree.below(each)]
    if not set(files) & {each.path for each in tree.documents_of_argocd}:
        return False
    kinds = {
        each.kind
        for name in files
        if name.endswith((".yaml", ".yml"))
        for each in read_documents(tree.read(name), name)
    }
    return len(folders) == len(_sources(document)) and kinds <= _ABOUT_APPS


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
    for each in tools:
        folder = each.folder
        known = seen.setdefault(folder, set())
        if each.name in known or (each.name == CUE and known):
            continue
        known.add(each.name)
        deploys_found = any(within(other, folder) for other in folders)
        if tree.in_chart(each.path) or not (nothing or each.deploys):
            continue
        if not (each.name == FLEET and deploys_found):
            name = named_by(folder, title)[1]
            reason, advice = each.words, each.advice(name)
            if counted[each.name] > _MOST_ALONE and not each.deploys:
                # The same words for all of them, so that they are listed in one line.
                reason, advice = f"files of {each.name} are not read", each.advice()
            found.append(RefusedApp(name, each.path, reason, advice))
    return found


def _with_fleet(tree: RepositoryTree, finding: DiscoveredApp) -> DiscoveredApp:
    """Add a note if a Fleet file in the app's folder or a parent folder configures it."""
    files = [each for each in tree.names if each.rpartition("/")[2] in ("fleet.yaml", "fleet.yml")]
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


def _with_base(finding: DiscoveredApp, laid: list[DiscoveredApp]) -> DiscoveredApp:
    """Add the base found in the folder layout, for environments without an overlay."""
    if finding.path is not None or finding.remote:
        return finding
    ours = set(finding.overlays.values())
    for each in laid:
        if ours & set(each.overlays.values()) and each.path is not None:
            return replace(finding, path=each.path)
    return finding
