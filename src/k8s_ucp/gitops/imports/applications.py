"""Apps that Argo CD's Applications declare: one for each environment becomes one app. Pure."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.imports.directories import takes_all
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    DiscoveredApp,
    NotImportable,
    RefusedApp,
    RemoteSource,
    app_name,
    in_path,
    in_text,
    sources_of,
    without_environment,
)
from k8s_ucp.gitops.imports.helm_values import check_settings, merged
from k8s_ucp.gitops.imports.kustomize_settings import used_settings, with_settings
from k8s_ucp.gitops.imports.layouts import plain_finding, values_of
from k8s_ucp.gitops.imports.trees import LOCAL, Origin, RepositoryTree
from k8s_ucp.gitops.manifests.forms import manifest_files
from k8s_ucp.gitops.manifests.reachable import FolderTree, resolve
from k8s_ucp.gitops.manifests.yaml_text import part

MOVING = frozenset(["", "HEAD", "main", "master", "None"])
"""Revisions that mean the newest commit."""
_IGNORED = "its ignoreDifferences are not taken: what they name may show as out of sync"
_SAYS_NOTHING = frozenset(["app", "application"])
"""What may be left of a name without its environment."""
_INLINE = ("values", "valuesObject", "parameters")
Fetch = Callable[[str, "str | None"], FolderTree]
"""(address, revision) to the files of another repository; raises UcpError."""


@dataclass(frozen=True)
class _Draft:
    """One Application, as far as it can be read by itself."""

    document: ArgoDocument
    name: str
    environment: str | None
    namespace: str | None
    remote: RemoteSource | None
    path: str
    helm: Mapping[str, Any]
    recurse: bool
    """Manifests in folders below count too."""
    kustomize: Mapping[str, Any]
    """What the Application sets of the kustomization, where that is here."""
    notes: tuple[str, ...]
    refs: Mapping[str, _ValuesSource]
    """Sources that hold values, by their names."""


@dataclass(frozen=True)
class _ValuesSource:
    """A source from which values files come. revision: None for the newest commit."""

    url: str
    revision: str | None
    elsewhere: str
    """What it is instead of this repository as it is read; "" where it is that."""
    folder: str = ""
    """From where paths are counted."""


@dataclass(frozen=True)
class _ValuesFile:
    """path: in the tree; None where it lies elsewhere."""

    name: str
    path: str | None
    content: bytes


@dataclass(frozen=True)
class DiscoveryContext:
    """What the reading of an Application looks at."""

    tree: RepositoryTree
    same: Callable[[str], bool]
    """An address is this repository."""
    environments: Collection[str]
    revision: str | None = None
    """What was asked for, where it isn't the default branch."""
    fetch: Fetch | None = None


def read_applications(
    applications: Iterable[tuple[ArgoDocument, str | None]], around: DiscoveryContext
) -> tuple[list[DiscoveredApp], list[RefusedApp]]:
    """applications: with the environment where it is known."""
    findings: list[DiscoveredApp] = []
    refusals: list[RefusedApp] = []
    groups: dict[str, list[_Draft]] = {}
    for document, environment in applications:
        try:
            drafts = _drafts(document, environment, around)
        except NotImportable as error:
            refusals.append(error.refusal(document.name, document.where))
            continue
        for each in drafts:
            groups.setdefault(each.name, []).append(each)
    for name, drafts in sorted(groups.items()):
        try:
            findings.append(_finding(name, drafts, around))
        except NotImportable as error:
            refusals.append(error.refusal(name, drafts[0].document.where))
    return findings, refusals


def _drafts(
    document: ArgoDocument, environment: str | None, around: DiscoveryContext
) -> list[_Draft]:
    """One for each source that renders something. Raises NotImportable."""
    spec = part(document.content, "spec")
    listed = sources_of(document.content)
    where = document.path.rpartition("/")[0]
    refs = {
        str(each["ref"]): _values_source(each, where, around) for each in listed if each.get("ref")
    }
    rendering = [each for each in listed if _chart_of(each) or each.get("path") is not None]
    if not rendering and len(listed) == 1 and listed[0].get("repoURL"):
        rendering = listed
    if not any(each.get("repoURL") for each in rendering):
        raise NotImportable("it has no source", "it may be a patch: import what is patched by it")
    notes = (_IGNORED,) if spec.get("ignoreDifferences") else ()
    found = [_draft(document, each, environment, around) for each in rendering]
    found = [replace(each, refs=refs, notes=notes) for each in found]
    return _apart(found) if len(found) > 1 else found


def _apart(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Sources of one Application as apps of their own, in one namespace."""
    first = drafts[0]
    found: dict[str, _Draft] = {}
    for each in drafts:
        name = each.name
        if found:
            own = _own_segments(each.path, each.environment)
            last = each.remote.chart if each.remote else None
            name = app_name(f"{name}-{last or (own[-1] if own else 'more')}")
        while name in found:
            name = app_name(f"{name}-more")
        found[name] = each
    note = f"the sources of one Application are an app each: {', '.join(found)}"
    space = first.namespace or first.name
    return [
        replace(each, name=name, namespace=space, notes=(*each.notes, note))
        for name, each in found.items()
    ]


def _draft(
    document: ArgoDocument,
    source: Mapping[str, Any],
    environment: str | None,
    around: DiscoveryContext,
) -> _Draft:
    _check_source(source)
    url, path = str(source.get("repoURL", "")), resolve("", str(source.get("path") or ""))
    if path is None:
        raise NotImportable(
            f"its path {source.get('path')} leads out of the repository", "correct it"
        )
    remote = _remote(document.name, source, url, path, around)
    _check_directory(part(source, "directory"), None if remote else path, around.tree)
    destination = part(part(document.content, "spec"), "destination")
    helm = part(source, "helm")
    found = environment or _environment(document, path, helm, destination, around.environments)
    if found and found not in around.environments and _is_app(found, path, document.name):
        # `web/overlays/web` is a variant, and no environment.
        found = None
    name = without_environment(document.name, found)
    if found and (name == found or name in _SAYS_NOTHING):
        own = _own_segments(path, found)
        name = own[-1] if own else name
    namespace = destination.get("namespace")
    return _Draft(
        document=document,
        name=app_name(name),
        environment=found,
        namespace=str(namespace) if namespace else None,
        remote=remote,
        path=path,
        helm=helm,
        recurse=part(source, "directory").get("recurse") is True,
        kustomize=_kustomize(source, None if remote else path, around.tree),
        notes=(),
        refs={},
    )


def _is_app(environment: str, path: str, name: str) -> bool:
    """What a folder below `overlays` is called by is the app's own name."""
    above = path.split("/")
    at = len(above) - 1 - above[::-1].index(environment) if environment in above else 0
    names = {name, *(name.removesuffix(f"-{each}") for each in _SAYS_NOTHING)}
    return environment in names or environment in above[:at]


def _own_segments(path: str, environment: str | None) -> list[str]:
    """Folders of a path that name the app."""
    return [each for each in path.split("/") if each not in (environment, "overlays", "base", "")]


def _values_source(
    source: Mapping[str, Any], where: str, around: DiscoveryContext
) -> _ValuesSource:
    """where: folder of the Application's file."""
    url, revision = str(source.get("repoURL")), str(source.get("targetRevision") or "")
    if url.startswith(LOCAL):
        folder = resolve(where, url.removeprefix(LOCAL))
        return _ValuesSource(url, None, "" if folder is not None else url, folder or "")
    wanted = None if revision in MOVING else revision
    if not around.same(url):
        return _ValuesSource(url, wanted, f"another repository, {url}")
    if wanted not in (None, around.revision):
        return _ValuesSource(url, wanted, f"the revision {revision} of this repository")
    return _ValuesSource(url, wanted, "")


def _chart_of(source: Mapping[str, Any]) -> tuple[str, str] | None:
    """(repository, name) of a chart. Registries are named without a scheme; by `oci://` and without
    a chart the whole address is one's.
    """
    url, chart = str(source.get("repoURL", "")).rstrip("/"), str(source.get("chart") or "")
    if not chart and not url.startswith("oci://"):
        return None
    url = url if "://" in url else f"oci://{url}"
    if url.startswith("oci://"):
        whole = f"{url}/{chart}" if chart else url
        url, _, chart = whole.rpartition("/")
    return url, chart


def _check_source(source: Mapping[str, Any]) -> None:
    if part(source, "plugin") or "plugin" in source:
        raise NotImportable(
            "a plugin of Argo CD renders it",
            "commit what it renders, and add that by `ucp app add`",
        )
    if part(part(source, "directory"), "jsonnet"):
        raise NotImportable(
            "the Application gives arguments to jsonnet",
            "add the app by `ucp app add`, and set them in its .argocd-source.yaml",
        )


def _kustomize(
    source: Mapping[str, Any], path: str | None, tree: RepositoryTree
) -> Mapping[str, Any]:
    """path: None where it lies elsewhere. Raises NotImportable."""
    used = used_settings(part(source, "kustomize"))
    if used and (path is None or _kind(tree, path) != "kustomize"):
        raise NotImportable(
            f"the Application sets kustomize.{', kustomize.'.join(sorted(used))} of "
            + ("another repository's folder" if path is None else f"{path}, which has none"),
            "write it to a kustomization of your own, and add that by `ucp app add`",
        )
    return used


def _check_directory(directory: Mapping[str, Any], path: str | None, tree: RepositoryTree) -> None:
    """An app has all files of its folder. path: None where it lies elsewhere.

    Raises NotImportable.
    """
    used = [key for key in ("include", "exclude") if directory.get(key)]
    if not used:
        return
    if path is not None and _kind(tree, path) == "directory":
        names = _manifests(tree, path)
        if not directory.get("recurse"):
            names = [each for each in names if "/" not in each]
        if takes_all(directory, names):
            return
    raise NotImportable(
        f"the Application chooses files by directory.{' and directory.'.join(used)}",
        "move the files that it deploys to a folder of their own, and add that by `ucp app add`",
    )


def _manifests(tree: RepositoryTree, folder: str) -> list[str]:
    """Files of a folder that hold objects, relative to it. Raises NotImportable."""
    start = f"{folder}/" if folder else ""
    files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
    try:
        return [*manifest_files(files), *(each for each in files if each.endswith(".jsonnet"))]
    except UsageError as error:
        raise NotImportable(error.message, error.next or "correct it") from error


def _remote(
    name: str, source: Mapping[str, Any], url: str, path: str, around: DiscoveryContext
) -> RemoteSource | None:
    revision = str(source.get("targetRevision") or "")
    if place := _chart_of(source):
        address, chart = place
        return RemoteSource(address, None if revision in ("", "*") else revision, chart)
    if not around.same(url):
        return RemoteSource(url, None if revision in MOVING else revision)
    if path not in around.tree.folders:
        raise NotImportable(
            f"the repository has no folder {path}",
            "correct the Application, or import another commit",
        )
    if revision not in MOVING and revision != around.revision:
        raise NotImportable(
            f"it runs the revision {revision} of this repository",
            f"import with --ref {revision}, or "
            f"{Origin(url=url, revision=revision).command(app_name(name), path)}",
        )
    return None


def _environment(
    document: ArgoDocument,
    path: str,
    helm: Mapping[str, Any],
    destination: Mapping[str, Any],
    known: Collection[str],
) -> str | None:
    """The first that tells: path, values files, name, folder of the manifest, destination."""
    if found := in_path(path, known):
        return found
    files = helm.get("valueFiles")
    for each in files if isinstance(files, list) else ():
        stem = posixpath.basename(str(each)).rpartition(".")[0]
        found = in_text(stem.removeprefix("values-").removeprefix("values."), known)
        if found := found or in_path(str(each), known):
            return found
    return (
        in_text(document.name, known)
        or in_path(document.path, known)
        or in_text(str(destination.get("name") or ""), known)
        or in_text(str(destination.get("namespace") or ""), known)
    )


def _finding(name: str, drafts: list[_Draft], around: DiscoveryContext) -> DiscoveredApp:
    drafts = _distinct(drafts)
    first = drafts[0]
    seen = [each.environment for each in drafts]
    if len(set(seen)) < len(seen):
        where = ", ".join(each.document.where for each in drafts)
        raise NotImportable(
            f"several Applications are the app {name} on one environment: {where}",
            f"add them under different names: {_numbered(name, drafts, around.tree)}",
        )
    namespace, notes = _namespace(name, drafts)
    notes = (*notes, *dict.fromkeys(note for each in drafts for note in each.notes))
    release = {str(each.helm["releaseName"]) for each in drafts if each.helm.get("releaseName")}
    if release - {name}:
        notes = (*notes, f"its release {', '.join(sorted(release))} will be called {name}")
    common = DiscoveredApp(
        name=name,
        form="kustomize",
        where=first.document.where,
        namespace=namespace,
        environments=tuple(sorted(each for each in seen if each)),
        notes=notes,
    )
    if first.remote is not None:
        return _of_remote(drafts, common, around)
    if any(each.remote for each in drafts):
        raise NotImportable(
            "one environment takes it from here and another from elsewhere",
            _alone(first, around.tree),
        )
    tree = around.tree
    kinds = {_kind(tree, each.path) for each in drafts}
    if len(kinds) > 1:
        raise NotImportable(
            f"its environments have different forms: {', '.join(sorted(kinds))}",
            _alone(first, tree),
        )
    if kinds == {"kustomize"}:
        overlays = {each.environment: each.path for each in drafts if each.environment}
        base = next((each.path for each in drafts if not each.environment), None)
        generated = _with_settings(drafts, tree)
        if generated:
            what = f"what the Application sets is written to {', '.join(sorted(generated))}"
            notes = (*common.notes, what)
            common = replace(common, generated=generated, notes=notes)
        return replace(common, path=base, overlays=overlays)
    if len({each.path for each in drafts}) > 1:
        raise NotImportable(
            "each environment has a folder of its own, and an app has one", _alone(first, tree)
        )
    if kinds == {"helm"}:
        read = {each.environment or "": _chart_values(each, around) for each in drafts}
        values: dict[str, str | bytes] = {
            key: text for key, text in read.items() if text is not None
        }
        if not common.environments:
            values = {**values_of(tree, first.path, around.environments)[0], **values}
        return replace(common, form="helm", path=first.path, values=values)
    found = plain_finding(tree, name, first.path, first.document.where)
    if found.form != "jsonnet" and not all(each.recurse for each in drafts):
        _check_depth(tree, first.path)
    return replace(common, form=found.form, path=found.path)


def _distinct(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Without those that deploy the same to the same environment."""
    found: list[_Draft] = []
    for each in drafts:
        if not any(_deploys(each) == _deploys(other) for other in found):
            found.append(each)
    return found


def _deploys(draft: _Draft) -> tuple[object, ...]:
    return (
        *(draft.environment, draft.namespace, draft.remote, draft.path),
        *(draft.helm, draft.kustomize, draft.recurse),
    )


def _numbered(name: str, drafts: Sequence[_Draft], tree: RepositoryTree) -> str:
    """The commands that add the first ones."""
    names = (name, *(f"{name}-{number}" for number in range(2, 4)))
    commands = [
        _command(replace(each, name=app), tree) for app, each in zip(names, drafts, strict=False)
    ]
    return "; ".join(dict.fromkeys(commands))


def _with_settings(drafts: Sequence[_Draft], tree: RepositoryTree) -> dict[str, bytes]:
    """{path: content} of the kustomizations with what their Applications set.

    Raises NotImportable where it would count for another environment as well.
    """
    found: dict[str, bytes] = {}
    for each in drafts:
        if not each.kustomize:
            continue
        file = tree.kustomization_file(each.path)
        others = [other for other in drafts if other.kustomize != each.kustomize]
        if any(other.path == each.path or file in tree.closure([other.path]) for other in others):
            raise NotImportable(
                f"it sets kustomize.{', kustomize.'.join(sorted(each.kustomize))} for one "
                f"environment, and {file} is of others too",
                "write an overlay for each environment, then import again",
            )

        def has(component: str, folder: str = each.path) -> bool:
            return resolve(folder, component) in tree.kustomizations

        found[file] = with_settings(tree.read(file), file, each.kustomize, has)
    return found


def _check_depth(tree: RepositoryTree, folder: str) -> None:
    """Without directory.recurse Argo CD deploys the top of a folder. Raises NotImportable."""
    start = f"{folder}/" if folder else ""
    if lower := [each for each in _manifests(tree, folder) if "/" in each]:
        raise NotImportable(
            f"the Application has no directory.recurse: true, and {start}{lower[0]} lies deeper",
            "set that to deploy all, or move what is not to be deployed; then import again",
        )


def _alone(draft: _Draft, tree: RepositoryTree) -> str:
    command = _command(draft, tree)
    return f"add it by `{command}`, and edit its environments in the app repository"


def _command(draft: _Draft, tree: RepositoryTree) -> str:
    """What adds the app as one of its Applications has it."""
    if draft.remote is None:
        return tree.origin.command(draft.name, draft.path)
    return _command_of(draft.name, draft.remote, draft.path)


def _command_of(app: str, remote: RemoteSource, path: str) -> str:
    if remote.chart is None:
        return Origin(url=remote.url, revision=remote.revision).command(app, path)
    words = ["--chart", remote.chart, "--repo", remote.url]
    if remote.url.startswith("oci://"):
        words = ["--chart", f"{remote.url.rstrip('/')}/{remote.chart}"]
    words += ["--version", remote.revision] if remote.revision else []
    return f"ucp app add {app} {' '.join(map(shlex.quote, words))}"


def _kind(tree: RepositoryTree, path: str) -> str:
    if path in tree.kustomizations:
        return "kustomize"
    return "helm" if path in tree.charts else "directory"


def _of_remote(
    drafts: list[_Draft], common: DiscoveredApp, around: DiscoveryContext
) -> DiscoveredApp:
    first, tree = drafts[0], around.tree
    if len({each.remote for each in drafts}) > 1:
        raise NotImportable(
            "its environments run different versions, and an app begins with one",
            f"add one by `{_command(first, tree)}`, then change the others by commits",
        )
    assert first.remote
    if first.remote.chart is None and len({each.path for each in drafts}) > 1:
        folder = posixpath.commonpath([f"/{each.path}" for each in drafts]).strip("/")
        if any(each.environment is None or each.helm for each in drafts):
            raise NotImportable("its environments have different folders", _alone(first, tree))
        overlays = {str(each.environment): each.path for each in drafts}
        return replace(common, path=folder, overlays=overlays, remote=first.remote)
    values = {each.environment or "": _remote_values(each, around) for each in drafts}
    return replace(
        common,
        form="helm" if first.remote.chart or any(values.values()) else "kustomize",
        path=first.path,
        values={key: text for key, text in values.items() if text is not None},
        remote=first.remote,
    )


def _namespace(name: str, drafts: list[_Draft]) -> tuple[str | None, tuple[str, ...]]:
    """An app has one namespace: what the environments' have in common, else its name."""
    found = {each.namespace for each in drafts if each.namespace}
    short = {
        without_environment(each.namespace, each.environment) for each in drafts if each.namespace
    }
    if found == short and len(found) <= 1:
        return next(iter(found), None), ()
    one = next(iter(short)) if len(short) == 1 else name
    return one, (f"its namespaces ({', '.join(sorted(found))}) become {one}",)


def _chart_values(draft: _Draft, around: DiscoveryContext) -> str | bytes | None:
    """A values file in the chart, or what several say together. Raises NotImportable."""
    check_settings(draft.helm)
    # The chart's own values count anyway.
    names = [each for each in _value_files(draft.helm) if each != "values.yaml"]
    found = _existing(draft, names, around)
    inline = any(draft.helm.get(key) for key in _INLINE)
    if not found and not inline:
        return None
    start, path = f"{draft.path}/" if draft.path else "", found[0].path if found else None
    if len(found) == 1 and not inline and path is not None and path.startswith(start):
        return path.removeprefix(start)
    return merged([(each.name, each.content) for each in found], draft.helm)


def chart_values(tree: RepositoryTree, chart: str, helm: Mapping[str, Any]) -> str | bytes | None:
    """What an Application gives to a chart of Applications: a file in it, or values; None for
    nothing. What lies elsewhere is left out. Raises NotImportable.
    """
    names = [each for each in _value_files(helm) if each != "values.yaml" and each[:1] != "$"]
    paths = [resolve(chart, each) for each in names]
    files = [each for each in paths if each and tree.has(each)]
    if not files and not any(helm.get(key) for key in _INLINE):
        return None
    return merged([(each, tree.read(each)) for each in files], helm)


def _remote_values(draft: _Draft, around: DiscoveryContext) -> str | bytes | None:
    """Of a chart from elsewhere, whose own files can't be read here. Raises NotImportable."""
    if not draft.helm:
        return None
    check_settings(draft.helm)
    names = [each for each in _value_files(draft.helm) if each != "values.yaml"]
    inside = [each for each in names if not each.startswith("$")]
    here = _existing(draft, [each for each in names if each not in inside], around)
    inline = any(draft.helm.get(key) for key in _INLINE)
    if inside and (len(inside) > 1 or here or inline):
        raise NotImportable(
            f"its values files {', '.join(inside)} lie elsewhere, and are merged with others",
            f"write them to one file, then {_command(draft, around.tree)} --values FILE",
        )
    if here or inline:
        return merged([(each.name, each.content) for each in here], draft.helm)
    return inside[0] if inside else None


def _existing(draft: _Draft, names: Iterable[str], around: DiscoveryContext) -> list[_ValuesFile]:
    """Values files that there are. Raises NotImportable."""
    found = []
    for name in names:
        if file := _file(draft, name, around):
            found.append(file)
        elif not draft.helm.get("ignoreMissingValueFiles"):
            raise NotImportable(f"its values file {name} does not exist", "correct the Application")
    return found


def _value_files(helm: Mapping[str, Any]) -> list[str]:
    found = helm.get("valueFiles")
    return [str(each) for each in found] if isinstance(found, list) else []


def _file(draft: _Draft, name: str, around: DiscoveryContext) -> _ValuesFile | None:
    """None where it does not exist. Raises NotImportable."""
    tree = around.tree
    path = resolve("", name.strip("/")) if name.startswith("/") else resolve(draft.path, name)
    if name.startswith("$"):
        ref, _, rest = name[1:].partition("/")
        source = draft.refs.get(ref) or _ValuesSource("", None, "a source that it has not")
        path = resolve(source.folder, rest)
        if source.elsewhere:
            content = _fetched(draft, name, source, path or "", around)
            return None if content is None else _ValuesFile(name, None, content)
    elif "://" in name:
        raise NotImportable(
            f"its values file {name} lies elsewhere",
            f"copy it to a file, then {_command(draft, tree)} --values FILE",
        )
    return _ValuesFile(path, path, tree.read(path)) if path and tree.has(path) else None


def _fetched(
    draft: _Draft, name: str, source: _ValuesSource, path: str, around: DiscoveryContext
) -> bytes | None:
    """A values file of another repository, or of another revision. Raises NotImportable."""
    why = ""
    if source.url and around.fetch:
        try:
            return around.fetch(source.url, source.revision).read(path)
        except UcpError as error:
            why = f", which can't be read: {' '.join(error.message.split())}"
    raise NotImportable(
        f"its values file {name} lies in {source.elsewhere}{why}",
        f"copy it to a file, then {_command(draft, around.tree)} --values FILE",
    )
