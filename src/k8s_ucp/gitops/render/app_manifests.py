"""Reads the sources of apps: folders beside ucp.yaml, git commits, charts, shipped manifests."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.git.environment import Credential
from k8s_ucp.gitops.manifests.chart_source import ChartRef, pull, with_dependencies
from k8s_ucp.gitops.manifests.forms import (
    KUSTOMIZATIONS,
    ChartFile,
    Files,
    chart_file,
    find_form,
    is_kustomization,
    manifest_files,
    overlays,
)
from k8s_ucp.gitops.manifests.git_source import is_hidden, open_commit
from k8s_ucp.gitops.manifests.images_and_ports import SHIPPED
from k8s_ucp.gitops.manifests.reachable import (
    CLONE_ALL,
    FolderTree,
    beyond,
    hidden_files_of_chart,
    kustomization,
    moved_up,
    refuse_submodules,
    resolve,
    submodule_of,
    taken_in,
)
from k8s_ucp.gitops.render.repositories import GENERATED, templates_folder
from k8s_ucp.topology import App, Topology

Manifests = Mapping[str, Mapping[str, bytes]]
"""{app: {path relative to its folder: content}}."""
MOST_BYTES = 16_000_000
"""Limit for one file. Some products install themselves with a third of it, most of it CRDs."""
_READ = (".yaml", ".yml", ".json", ".tpl", ".tgz", ".jsonnet", ".libsonnet")
"""Endings of files that are read as manifests, templates or charts; others may be pictures."""
_CLOSED = frozenset(("creds", "gitops", ".ucp"))
"""Folders beside ucp.yaml with credentials and state, which no app may use."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""First bytes of a file whose content Git LFS stores elsewhere."""


@dataclass(frozen=True)
class SourceFetcher:
    """How remote sources are fetched."""

    cache: Path
    """The user's cache: each commit and chart version is fetched once."""
    helm: Callable[[], Path]
    credential: Callable[[App], Credential | None]
    """Returns the credential for an app's repository."""


def read_manifests(
    topology: Topology, folder: Path, fetcher: SourceFetcher | None = None
) -> dict[str, dict[str, bytes]]:
    """{app: {path relative to its folder: content}}. folder: the one that contains ucp.yaml.

    Raises UsageError for a folder that doesn't exist, is outside of `folder` or contains no
    manifests; UcpError if a source can't be fetched.
    """
    found = {}
    for app in topology.spec.apps:
        if app.form == "image" or (app.form == "repo" and app.as_ is None):
            continue
        try:
            found[app.name] = read_app(app, folder, fetcher)
        except UsageError as error:
            error.next = error.next or f"fix the app {app.name} in ucp.yaml"
            raise
    return found


def read_app(app: App, folder: Path, fetcher: SourceFetcher | None = None) -> dict[str, bytes]:
    """The files of one app. Raises the same errors as `read_manifests`."""
    try:
        return _with_values(app, _read(app, folder, fetcher), folder)
    except UsageError as error:
        if app.name not in error.message:
            error.message = f"the app {app.name}: {error.message}"
        raise


def all_files(app: App, folder: Path, fetcher: SourceFetcher) -> dict[str, bytes]:
    """All files of an app's folder, also those that aren't manifests; none of another source."""
    path = app.path or ""
    if app.form == "path" and not path.startswith(SHIPPED):
        return _local(app, folder).below(path)
    if app.form == "repo":
        return repository_tree_of(app, fetcher).below(path)
    return {}


def repository_tree_of(app: App, fetcher: SourceFetcher) -> FolderTree:
    """The commit of an app with a git repository of its own. Raises UcpError."""
    credential = fetcher.credential(app)
    return open_commit(app.repo or "", app.revision or "", fetcher.cache, credential)


def _read(app: App, folder: Path, fetcher: SourceFetcher | None) -> dict[str, bytes]:
    path = app.path or ""
    if app.form == "path" and path.startswith(SHIPPED):
        root = templates_folder() / "shipped" / path.removeprefix(SHIPPED)
        return {name: _shipped(name, file.read_bytes()) for name, file in _files(root)}
    if app.form == "path":
        return _sized(app, _relevant_files(app, _local(app, folder), path, fetcher))
    if fetcher is None:
        raise UcpError(
            f"the manifests of the app {app.name} are remote, and downloads are disabled"
        )
    if app.chart:
        chart = app.chart
        ref, credential = ChartRef(chart.repo, chart.name), fetcher.credential(app)
        return pull(
            fetcher.helm(), ref, chart.version, fetcher.cache, credential, digest=chart.digest
        )
    repository_tree = repository_tree_of(app, fetcher)
    if path and repository_tree.read(path) is None and not repository_tree.names(path):
        if module := submodule_of(repository_tree, path):
            raise UsageError(f"{path} is in the git submodule {module}", next=CLONE_ALL)
        raise UsageError(
            f"the app {app.name}: {app.repo} has no folder or file {path} at {app.revision}",
            next="choose another one with --path",
        )
    return _sized(app, _relevant_files(app, repository_tree, path, fetcher))


def _relevant_files(
    app: App, folder_tree: FolderTree, path: str, fetcher: SourceFetcher | None
) -> dict[str, bytes]:
    """The relevant files for the folder's form; if `path` is a file, only that one."""
    if (alone := folder_tree.read(path) if path else None) is not None:
        return {posixpath.basename(path): alone}
    names = dict.fromkeys(folder_tree.names(path), b"")
    kustomized = is_kustomization(names) or overlays(names) or app.overlays
    if kustomized and app.as_ in (None, "kustomize"):
        files = _kustomization(app, folder_tree, path, names)
        _refuse_pointers(files, files)
        return files
    chart = "Chart.yaml" in names and app.as_ in (None, "helm")
    files = _chart(folder_tree, path, fetcher) if chart else folder_tree.below(path)
    _refuse_pointers(files, (each for each in files if each.endswith(_READ)))
    if not chart and find_form(files, app.as_).form in ("directory", "kustomize"):
        return {name: files[name] for name in manifest_files(files)}
    return files


def _refuse_pointers(files: Files, used: Iterable[str]) -> None:
    """Raise UsageError for a Git LFS pointer: without its content, the app would lack something."""
    for name in sorted(used):
        if files[name].startswith(LFS_POINTER):
            raise UsageError(
                f"{name} is a Git LFS pointer, not the file itself",
                next="run `git lfs pull` in a clone and add that folder",
            )


def _kustomization(app: App, folder_tree: FolderTree, path: str, names: Files) -> dict[str, bytes]:
    _refuse_missing_overlays(app, names)
    wanted = [f"overlays/{each}" for each in overlays(names)] + [*app.overlays.values(), "base", ""]
    starts = [f"{path}/{each}".strip("/") for each in wanted if is_kustomization(names, each)]
    taken = taken_in(folder_tree, starts)
    refuse_submodules(folder_tree, taken)
    if kustomization(taken, path).get("kind") == "Component":
        raise UsageError(
            f"the app {app.name}: {path} is a Component of kustomize, which adds to other objects",
            next="choose a folder whose kustomization lists it under `components`",
        )
    folder, files = moved_up(taken, path)
    if not folder:
        return files
    if overlays(names):
        raise UsageError(
            f"the app {app.name}: its overlays reference folders outside of {path or '.'}",
            next="choose the folder that contains both with --path",
        )
    # Keep all relative paths: move everything one folder down.
    return {**files, "kustomization.yaml": f"resources:\n  - {folder}\n".encode()}


def _refuse_missing_overlays(app: App, names: Files) -> None:
    """Raise UsageError if a folder that is named as an environment's overlay is none."""
    for environment, folder in app.overlays.items():
        if not is_kustomization(names, folder):
            found = sorted(
                {posixpath.dirname(each) for each in names if _is_kustomization_below(each)}
            )
            there = f"; it has {some_of(found)}" if found else ""
            raise UsageError(
                f"the app {app.name} has no kustomization in {folder}, its overlay for "
                f"{environment}",
                next=f"correct --overlay {environment}=DIR, or `overlays` of the app in "
                f"ucp.yaml{there}",
            )


def _is_kustomization_below(path: str) -> bool:
    return "/" in path and posixpath.basename(path) in KUSTOMIZATIONS


def _chart(folder_tree: FolderTree, path: str, fetcher: SourceFetcher | None) -> dict[str, bytes]:
    files = _files_of_chart(folder_tree, path)
    chart = chart_file(files)
    if not chart.dependencies or fetcher is None:
        return files
    return with_dependencies(fetcher.helm(), files, charts_beside(folder_tree, path, chart))


def _files_of_chart(folder_tree: FolderTree, path: str) -> dict[str, bytes]:
    files = folder_tree.below_as_helm(path)
    return {**files, **hidden_files_of_chart(folder_tree, path, files)}


def charts_beside(folder_tree: FolderTree, path: str, chart: ChartFile) -> dict[str, Files]:
    """The files of the charts that a chart depends on by `file://` URLs. Raises UsageError."""
    beside: dict[str, Files] = {}
    for address, relative in chart.neighbors.items():
        folder = resolve(path, relative)
        if folder is None or not folder_tree.names(folder):
            raise UsageError(
                f"the chart {chart.name} depends on {address}, which does not exist",
                next="put that chart there, or remove the dependency",
            )
        beside[address] = _files_of_chart(folder_tree, folder)
    return beside


def _local(app: App, folder: Path) -> FolderTree:
    """The folder of ucp.yaml, which contains the app's folder."""
    root = folder / (app.path or "")
    advice = f"fix `path` of the app {app.name} in ucp.yaml"
    if not root.exists():
        raise UsageError(f"the app {app.name} has no manifests: {root} does not exist", next=advice)
    if not root.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"the app {app.name}: {root} is outside {folder}", next=advice)

    return folder_tree_of(folder, closed=_CLOSED)


def folder_tree_of(root: Path, *, closed: Collection[str] = ()) -> FolderTree:
    """A folder on this machine; files outside of it are not read.

    closed: names of folders in it that are not read either.
    """

    top = root.resolve()

    def names(below: str) -> list[str]:
        return paths(below, hidden=False)

    def hidden(below: str) -> list[str]:
        return paths(below, hidden=True)

    def paths(below: str, *, hidden: bool) -> list[str]:
        found = _files(root / below, root, hidden=hidden)
        return [name for name, file in found if not closed or is_open(file)]

    def is_open(file: Path) -> bool:
        resolved = file.resolve()
        return resolved.is_relative_to(top) and resolved.relative_to(top).parts[0] not in closed

    def read(path: str) -> bytes | None:
        file = root / path
        try:
            exists = file.is_file() and is_open(file)
        except OSError:
            # Such as a text of a kustomization that is too long for a path.
            return None
        if not exists:
            return None
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{file} is too large for a manifest", next="leave it out")
        return file.read_bytes()

    def links(below: str) -> dict[str, str]:
        found = {}
        for each in sorted((root / below).rglob("*")):
            name = each.relative_to(root / below).as_posix()
            if each.is_symlink() and not is_hidden(name) and (target := linked_folder(each)):
                found[name] = target
        return found

    def linked_folder(link: Path) -> str | None:
        target = _target_within(link, top)
        is_read = target is not None and target.is_dir() and is_open(target)
        return target.relative_to(top).as_posix() if target and is_read else None

    return FolderTree(names, read, hidden, links)


def outside(source: Path, top: Path) -> dict[str, bytes]:
    """{path relative to top: content} of what `source` uses besides the files that are in it.

    Files outside of it, hidden ones, and those in folders that symbolic links lead to.

    Raises UsageError if its kustomization lists a folder or file that isn't below `top`.
    """
    folder_tree = folder_tree_of(top)
    path = source.relative_to(top).as_posix()
    path = "" if path == "." else path
    found: dict[str, bytes] = {}
    names = folder_tree.names(path)
    kustomized = {
        f"{path}/{name.rpartition('/')[0]}".strip("/")
        for name in names
        if name.rpartition("/")[2] in KUSTOMIZATIONS
    }
    found |= taken_in(folder_tree, sorted(kustomized))
    refuse_submodules(folder_tree, found)
    if lost := beyond(folder_tree, path):
        raise UsageError(
            f"the kustomization {lost[0] or '.'} lists {lost[1]}, which is outside of the folder "
            "that is read",
            next="add it from a clone of its git repository, all of which is read",
        )
    if "Chart.yaml" in names:
        files = _files_of_chart(folder_tree, path)
        found |= {posixpath.join(path, each): text for each, text in files.items()}
        for folder in _neighbors(chart_file(files), path):
            files = _files_of_chart(folder_tree, folder)
            found |= {f"{folder}/{each}": text for each, text in files.items()}
    listed = {posixpath.join(path, each) for each in names}
    return {each: text for each, text in found.items() if each not in listed}


def _neighbors(chart: ChartFile, path: str) -> list[str]:
    """Folders of charts that a chart depends on with `file://` URLs. Raises UsageError."""
    found = []
    for address, relative in chart.neighbors.items():
        folder = resolve(path, relative)
        if folder is None:
            raise UsageError(
                f"the chart {chart.name} depends on {address}, which is outside of the "
                "folder that is read",
                next="add it from a clone of its git repository, all of which is read, or put "
                "that chart into its charts/ folder by `helm dependency build`",
            )
        found.append(folder)
    return [each for each in found if each]


def _sized(app: App, files: dict[str, bytes]) -> dict[str, bytes]:
    for name, content in files.items():
        if len(content) > MOST_BYTES:
            raise UsageError(f"the app {app.name}: {name} is too large for a manifest")
    if not files:
        raise UsageError(
            f"the app {app.name} has no manifests: none in {app.path or app.repo}",
            next=f"fix `path` of the app {app.name} in ucp.yaml",
        )
    return files


def _with_values(app: App, files: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """A chart's files with the values files that the topology names, at their usual paths."""
    for environment, name in app.values.items():
        content = files.get(name)
        if content is None:
            content = folder_tree_of(folder, closed=_CLOSED).read(name)
            if content is None:
                raise UsageError(
                    f"the app {app.name}: the values file {name} for {environment} "
                    "exists neither in the chart nor next to ucp.yaml",
                    next=f"fix `values` of the app {app.name} in ucp.yaml",
                )
        files = {**files, f"values-{environment}.yaml": content}
    return files


def _files(
    root: Path, top: Path | None = None, *, hidden: bool = False
) -> Iterator[tuple[str, Path]]:
    """Files below a folder: the hidden ones, or the others. top: its links are followed."""
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if file.is_symlink() and not (top and links_within(file, top)):
            continue
        if is_hidden(name) == hidden and file.is_file():
            yield name, file


def links_within(link: Path, top: Path) -> bool:
    """A symbolic link leads to a file below a folder that isn't hidden."""
    target = _target_within(link, top)
    return target is not None and target.is_file()


def _target_within(link: Path, top: Path) -> Path | None:
    """What a symbolic link leads to; None if that isn't below a folder, or hidden there."""
    # Unlike `resolve`, this takes links that lead to each other.
    target, top = Path(os.path.realpath(link)), top.resolve()
    inside = target.is_relative_to(top) and not is_hidden(target.relative_to(top).as_posix())
    return target if inside else None


def _shipped(name: str, content: bytes) -> bytes:
    """Shipped manifests get the header of generated files."""
    return f"# {GENERATED}\n".encode() + content if name.endswith(".yaml") else content
