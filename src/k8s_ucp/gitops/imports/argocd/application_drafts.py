"""Reads one Application for an import: its source, settings and environment. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.argocd.directories import takes_all
from k8s_ucp.gitops.imports.argocd.kustomize_settings import used_settings
from k8s_ucp.gitops.imports.argocd.source_files import with_files
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    NotImportable,
    RemoteSource,
    app_name,
    in_path,
    in_text,
    sources_of,
    without_environment,
)
from k8s_ucp.gitops.imports.templates import refuse_unfilled
from k8s_ucp.gitops.imports.trees import LOCAL, MOVING, RepositoryTree, from_the_root
from k8s_ucp.gitops.manifests.forms import manifest_files
from k8s_ucp.gitops.manifests.reachable import (
    CLONE_ALL,
    FolderTree,
    join,
    resolve,
    submodule_of,
)
from k8s_ucp.gitops.manifests.yaml_text import part

_UPDATER = "argocd-image-updater.argoproj.io/"
_UPDATED = (
    "Argo CD Image Updater changed its images; here, the pipeline that builds one promotes it: "
    "`ucp promote`"
)
_MANUAL = "it was synced manually in Argo CD; here, each commit to its folder is deployed at once"
_IGNORED = "its ignoreDifferences are not imported: these fields may be shown as OutOfSync"
_OF_NAMESPACE = (
    "its managedNamespaceMetadata is not imported: add a Namespace with these labels and "
    "annotations to its manifests"
)
_SAYS_NOTHING = frozenset(["app", "application"])
"""What may remain of a name without its environment, but isn't a usable app name."""
Fetch = Callable[[str, "str | None"], FolderTree]
"""(URL, revision) to the files of another repository; raises UcpError."""


@dataclass(frozen=True)
class Draft:
    """One Application, as far as it can be read in isolation."""

    document: ArgoDocument
    name: str
    environment: str | None
    namespace: str | None
    remote: RemoteSource | None
    path: str
    helm: Mapping[str, Any]
    recurse: bool
    """Manifests in subfolders are included."""
    kustomize: Mapping[str, Any]
    """The Application's overrides of its kustomization, if that is in this repository."""
    notes: tuple[str, ...]
    refs: Mapping[str, ValuesSource]
    """Sources that provide values files, by their `ref`."""


@dataclass(frozen=True)
class ValuesSource:
    """A source that provides values files. revision: None is the newest commit."""

    url: str
    revision: str | None
    elsewhere: str
    """What it is instead, if not this repository at the revision being read; else ""."""
    folder: str = ""
    """The folder that paths are relative to."""


@dataclass(frozen=True)
class DiscoveryContext:
    """Context for reading an Application."""

    tree: RepositoryTree
    same: Callable[[str], bool]
    """Whether a URL is that of this repository."""
    environments: Collection[str]
    revision: str | None = None
    """The requested revision, if it isn't the default branch."""
    fetch: Fetch | None = None


def drafts_of(
    document: ArgoDocument, environment: str | None, context: DiscoveryContext
) -> list[Draft]:
    """One draft for each source that renders something. Raises NotImportable."""
    spec = part(document.content, "spec")
    listed = sources_of(document.content)
    where = document.path.rpartition("/")[0]
    refs = {
        str(each["ref"]): _values_source(each, where, context) for each in listed if each.get("ref")
    }
    rendering = [
        from_the_root(item, document.path) if item.get("ref") else item
        for item in listed
        if _chart_of(item) or item.get("path") is not None
    ]
    if not rendering and len(listed) == 1 and listed[0].get("repoURL"):
        rendering = listed
    if not any(each.get("repoURL") for each in rendering):
        raise NotImportable(
            "it has no source", "it may be a patch: import the Application that it patches"
        )
    annotations = part(part(document.content, "metadata"), "annotations")
    notes: tuple[str, ...] = (_IGNORED,) if spec.get("ignoreDifferences") else ()
    notes += () if _is_automated(spec) else (_MANUAL,)
    policy = part(spec, "syncPolicy")
    notes += (_OF_NAMESPACE,) if policy.get("managedNamespaceMetadata") else ()
    notes += (_UPDATED,) if any(str(each).startswith(_UPDATER) for each in annotations) else ()
    found = [_draft(document, each, environment, context) for each in rendering]
    found = [each for each in found if _renders_something(each, context.tree)] or found[:1]
    found = [replace(each, refs=refs, notes=notes) for each in found]
    return _apart(found) if len(found) > 1 else found


def _renders_something(draft: Draft, tree: RepositoryTree) -> bool:
    """False for a folder whose manifests are optional, and which has none."""
    if draft.remote or kind_of(tree, draft.path) != "directory":
        return True
    try:
        return bool(manifests_below(tree, draft.path))
    except NotImportable:
        return True


def _is_automated(spec: Mapping[str, Any]) -> bool:
    """Whether Argo CD syncs an Application by itself."""
    automated = part(spec, "syncPolicy").get("automated")
    return isinstance(automated, dict) and automated.get("enabled") is not False


def _apart(drafts: Sequence[Draft]) -> list[Draft]:
    """Turn the sources of one Application into separate apps in the same namespace."""
    first = drafts[0]
    found: dict[str, Draft] = {}
    for each in drafts:
        name = each.name
        if found:
            own = _own_segments(each.path, each.environment)
            last = each.remote.chart if each.remote else None
            name = app_name(f"{name}-{last or (own[-1] if own else 'more')}")
        while name in found:
            name = app_name(f"{name}-more")
        found[name] = each
    note = f"each source of the Application becomes an app: {', '.join(found)}"
    space = first.namespace or first.name
    return [
        replace(each, name=name, namespace=space, notes=(*each.notes, note))
        for name, each in found.items()
    ]


def _draft(
    document: ArgoDocument,
    source: Mapping[str, Any],
    environment: str | None,
    context: DiscoveryContext,
) -> Draft:
    _check_source(source)
    fields = {key: str(source.get(key) or "") for key in ("repoURL", "path", "chart")}
    refuse_unfilled({"name": document.name, **fields})
    url, path = str(source.get("repoURL", "")), resolve("", str(source.get("path") or ""))
    if path is None:
        raise NotImportable(
            f"its path {source.get('path')} points outside of the repository", "correct it"
        )
    if context.same(url) and not _chart_of(source):
        source = with_files(source, path, document.name, context.tree)
        _check_source(source)
    remote = _remote(document.name, source, url, path, context)
    _check_directory(part(source, "directory"), None if remote else path, context.tree)
    destination = part(part(document.content, "spec"), "destination")
    helm = part(source, "helm")
    found = environment or _environment(document, path, helm, destination, context.environments)
    if found and found not in context.environments and _is_app(found, path, document.name):
        # `web/overlays/web` is a variant, not an environment.
        found = None
    name = without_environment(document.name, found)
    if found and (name == found or name in _SAYS_NOTHING):
        own = _own_segments(path, found)
        name = own[-1] if own else name
    namespace = destination.get("namespace")
    return Draft(
        document=document,
        name=app_name(name),
        environment=found,
        namespace=str(namespace) if namespace else None,
        remote=remote,
        path=path,
        helm=helm,
        recurse=part(source, "directory").get("recurse") is True,
        kustomize=_kustomize(source, None if remote else path, context.tree),
        notes=(),
        refs={},
    )


def _is_app(environment: str, path: str, name: str) -> bool:
    """A folder below `overlays` is named like the app itself."""
    above = path.split("/")
    at = len(above) - 1 - above[::-1].index(environment) if environment in above else 0
    names = {name, *(name.removesuffix(f"-{each}") for each in _SAYS_NOTHING)}
    return environment in names or environment in above[:at]


def _own_segments(path: str, environment: str | None) -> list[str]:
    """Folders of a path that can name the app."""
    return [each for each in path.split("/") if each not in (environment, "overlays", "base", "")]


def _values_source(
    source: Mapping[str, Any], where: str, context: DiscoveryContext
) -> ValuesSource:
    """where: folder of the Application's file."""
    url, revision = str(source.get("repoURL")), str(source.get("targetRevision") or "")
    if url.startswith(LOCAL):
        folder = resolve(where, url.removeprefix(LOCAL))
        return ValuesSource(url, None, "" if folder is not None else url, folder or "")
    wanted = None if revision in MOVING else revision
    if not context.same(url):
        return ValuesSource(url, wanted, f"another repository, {url}")
    if wanted not in (None, context.revision):
        return ValuesSource(url, wanted, f"the revision {revision} of this repository")
    return ValuesSource(url, wanted, "")


def _chart_of(source: Mapping[str, Any]) -> tuple[str, str] | None:
    """(repository, name) of a chart, or None.

    Argo CD names registries without a scheme; an `oci://` URL without `chart` is the whole
    reference.
    """
    url, chart = str(source.get("repoURL", "")).rstrip("/"), str(source.get("chart") or "")
    if not chart and not url.startswith("oci://"):
        return None
    url = url if "://" in url else f"oci://{url}"
    if url.startswith("oci://"):
        reference = f"{url}/{chart}" if chart else url
        url, _, chart = reference.rpartition("/")
    return url, chart


def _check_source(source: Mapping[str, Any]) -> None:
    if part(source, "plugin") or "plugin" in source:
        raise NotImportable(
            "a plugin of Argo CD renders it",
            "commit what it renders, and add that with `ucp app add`",
        )
    if part(part(source, "directory"), "jsonnet"):
        raise NotImportable(
            "the Application passes arguments to jsonnet",
            "add the app with `ucp app add`, and set them in its .argocd-source.yaml",
        )


def _kustomize(
    source: Mapping[str, Any], path: str | None, tree: RepositoryTree
) -> Mapping[str, Any]:
    """The Application's overrides of its kustomization. path: None if it is in another repository.

    Raises NotImportable.
    """
    used = used_settings(part(source, "kustomize"))
    if used and (path is None or kind_of(tree, path) != "kustomize"):
        raise NotImportable(
            f"the Application sets kustomize.{', kustomize.'.join(sorted(used))} of "
            + ("another repository's folder" if path is None else f"{path}, which has none"),
            "write it to a kustomization, and add that with `ucp app add`",
        )
    return used


def _check_directory(directory: Mapping[str, Any], path: str | None, tree: RepositoryTree) -> None:
    """Check that include and exclude select all files, since an app includes its whole folder.

    path: None if it is in another repository. Raises NotImportable.
    """
    used = [key for key in ("include", "exclude") if directory.get(key)]
    if not used:
        return
    if path is not None and kind_of(tree, path) == "directory":
        names = manifests_below(tree, path)
        if not directory.get("recurse"):
            names = [each for each in names if "/" not in each]
        if takes_all(directory, names):
            return
    raise NotImportable(
        f"the Application selects files with directory.{' and directory.'.join(used)}",
        "move the files that it deploys to a separate folder, and add that with `ucp app add`",
    )


def manifests_below(tree: RepositoryTree, folder: str) -> list[str]:
    """Files of a folder that contain objects, relative to it. Raises NotImportable."""
    start = f"{folder}/" if folder else ""
    files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
    try:
        return [*manifest_files(files), *(each for each in files if each.endswith(".jsonnet"))]
    except UsageError as error:
        raise NotImportable(error.message, error.next or "correct it") from error


def _remote(
    name: str, source: Mapping[str, Any], url: str, path: str, context: DiscoveryContext
) -> RemoteSource | None:
    revision = str(source.get("targetRevision") or "")
    if found_chart := _chart_of(source):
        address, chart = found_chart
        return RemoteSource(address, None if revision in ("", "*") else revision, chart)
    if not context.same(url):
        return RemoteSource(url, None if revision in MOVING else revision)
    if path not in context.tree.folders:
        if module := submodule_of(context.tree.folder_tree, path):
            raise NotImportable(f"its folder {path} is in the git submodule {module}", CLONE_ALL)
        raise NotImportable(
            f"the repository has no folder {path}",
            "correct the Application, or import another commit",
        )
    if revision not in MOVING and revision != context.revision:
        whole = f"import with --ref {quote(revision)}"
        raise NotImportable(
            f"its targetRevision is {revision} of this repository",
            f"{whole}, or {RemoteSource(url, revision).command(app_name(name), path)}",
            for_many=whole,
        )
    return None


def _environment(
    document: ArgoDocument,
    path: str,
    helm: Mapping[str, Any],
    destination: Mapping[str, Any],
    known: Collection[str],
) -> str | None:
    """The first match in: path, values files, name, folder of the manifest, destination."""
    if found := in_path(path, known):
        return found
    files = helm.get("valueFiles")
    for each in files if isinstance(files, list) else ():
        stem = posixpath.basename(str(each)).rpartition(".")[0]
        found = in_text(stem.removeprefix("values-").removeprefix("values."), known)
        if found := found or in_path(str(each), known):
            return found
    others = (
        in_path(document.path, known),
        in_text(str(destination.get("name") or ""), known),
        in_text(str(destination.get("namespace") or ""), known),
    )
    # `shop-test-web` may be a test of the shop, unless something else says the same.
    inside = (each for each in others if each and f"-{each}-" in document.name)
    return in_text(document.name, known) or next(inside, None) or next(filter(None, others), None)


def how_to_add(draft: Draft, tree: RepositoryTree) -> str:
    """Advice for an Application that can't be imported."""
    command = command_of(draft, tree)
    return f"add it with `{command}`, and edit its environments in the app repository"


def command_of(draft: Draft, tree: RepositoryTree) -> str:
    """The command that adds the app as this Application defines it."""
    if draft.remote is None:
        return tree.origin.command(draft.name, draft.path)
    return draft.remote.command(draft.name, draft.path)


def kind_of(tree: RepositoryTree, path: str) -> str:
    """The form in which Argo CD renders a folder."""
    if path in tree.kustomizations:
        return "kustomize"
    # An Application can also name a chart inside of another one's folder.
    return "helm" if tree.has(join(path, "Chart.yaml")) else "directory"
