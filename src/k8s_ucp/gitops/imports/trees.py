"""A repository's files for the import: names are listed once, contents are read on demand."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from k8s_ucp.errors import UsageError, command_line
from k8s_ucp.gitops.imports.findings import ArgoDocument, RemoteSource, free_name
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS, objects
from k8s_ucp.gitops.manifests.reachable import (
    FolderTree,
    join,
    kustomization,
    resolve,
    taken_in,
    within,
)
from k8s_ucp.gitops.manifests.sources import entries
from k8s_ucp.gitops.manifests.yaml_text import documents, has_template, maps, part, plain_text
from k8s_ucp.names import SECRET_TYPE

_BREAK = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_ARGO = re.compile(r"argoproj\.io/", re.MULTILINE)
_APPLICATION = re.compile(
    r"^[ \t]*(?:-[ \t]+)?kind:\s*[\"']?Application(?:Set)?\b|\"kind\":\s*\"Application(?:Set)?\"",
    re.MULTILINE,
)
_FLUX = re.compile(r"fluxcd\.io/")
_OF_FLUX = re.compile(rb"(?:apiVersion|group)[\"']?:[ \t]*[\"']?[\w.-]*fluxcd\.io\b")
_MOST_KEPT = 64 * 1024 * 1024
"""Bytes of files that are kept in memory while a repository is searched."""
MOVING = frozenset(["", "HEAD", "main", "master", "None"])
"""Revisions that stand for the newest commit."""
LOCAL = "cnoe://"
"""Prefix that idpbuilder uses instead of a URL, for a folder beside the Application's file."""


@dataclass(frozen=True)
class Origin:
    """How the user refers to the repository: by a folder, or by a URL with a revision."""

    folder: str = ""
    url: str = ""
    revision: str | None = None

    def command(self, app: str, path: str = "") -> str:
        """The command that adds the app in a folder or file."""
        if self.url:
            return RemoteSource(self.url, self.revision).command(app, path)
        folder = posixpath.join(self.folder, path) or "."
        return command_line("ucp", "app", "add", free_name(app), folder)


class RepositoryTree:
    """The files of a repository."""

    def __init__(self, folder_tree: FolderTree, origin: Origin | None = None) -> None:
        self.folder_tree = replace(folder_tree, read=_remembering(folder_tree))
        self.origin = origin or Origin()
        self.names = _without_dependencies(folder_tree.names(""))
        self.generated = frozenset[str]()
        """Files that aren't in the repository itself."""
        self._passed_over: tuple[str, ...] = ()
        self._kustomizations: dict[str, Mapping[str, object]] = {}
        """{folder: its kustomization}. Each is looked at many times, and parsing takes long."""
        self._config_maps: dict[str, list[ArgoDocument]] = {}

    def with_generated(self, files: Mapping[str, bytes]) -> RepositoryTree:
        """A tree that has these files, too."""

        def names(folder: str) -> list[str]:
            start = f"{folder}/" if folder else ""
            more = (each.removeprefix(start) for each in files if each.startswith(start))
            return [*self.folder_tree.names(folder), *more]

        def read(path: str) -> bytes | None:
            return files[path] if path in files else self.folder_tree.read(path)

        found = RepositoryTree(replace(self.folder_tree, names=names, read=read), self.origin)
        found.generated = frozenset(files)
        found._passed_over = self._passed_over
        return found

    def read(self, path: str) -> bytes:
        return self.folder_tree.read(path) or b""

    @cached_property
    def folders(self) -> frozenset[str]:
        found = {""}
        for name in self.names:
            while name := name.rpartition("/")[0]:
                found.add(name)
        return frozenset(found)

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self.names)

    def has(self, path: str) -> bool:
        return path in self._all

    def below(self, folder: str) -> list[str]:
        """Paths of the files below a folder."""
        start = f"{folder}/" if folder else ""
        return [each for each in self.names if each.startswith(start)]

    @cached_property
    def kustomizations(self) -> frozenset[str]:
        """Folders with a kustomization."""
        return frozenset(
            each.rpartition("/")[0]
            for each in self.names
            if each.rpartition("/")[2] in KUSTOMIZATIONS
        )

    @cached_property
    def charts(self) -> frozenset[str]:
        """Folders with a chart, without subcharts."""
        found = {
            each.rpartition("/")[0]
            for each in self.names
            if each.rpartition("/")[2] == "Chart.yaml"
        }
        return frozenset(
            each
            for each in found
            if not any(other != each and within(each, other) for other in found)
        )

    @cached_property
    def app_charts(self) -> frozenset[str]:
        """Charts whose templates contain Applications."""
        return frozenset(
            chart
            for chart in self.charts
            if self.is_searched(chart)
            and any(
                is_application(self._text(each))
                for each in self.below(join(chart, "templates"))
                if each.endswith((".yaml", ".yml"))
            )
        )

    def pass_over(self, folders: Collection[str]) -> None:
        """Search no apps in these folders; apps elsewhere may use files in them."""
        self._passed_over = tuple(f"{each}/" for each in folders)

    def is_searched(self, path: str) -> bool:
        return not f"{path}/".startswith(self._passed_over)

    def in_chart(self, path: str) -> bool:
        return any(within(path, each) for each in self.charts)

    def kustomization(self, folder: str) -> Mapping[str, object]:
        """A folder's kustomization; empty if it has none that can be parsed."""
        if folder not in self._kustomizations:
            files = {join(folder, name): self.read(join(folder, name)) for name in KUSTOMIZATIONS}
            found = kustomization({path: text for path, text in files.items() if text}, folder)
            self._kustomizations[folder] = found
        return self._kustomizations[folder]

    def kustomization_file(self, folder: str) -> str:
        """Path of a folder's kustomization, which must exist."""
        return next(each for name in KUSTOMIZATIONS if self.has(each := join(folder, name)))

    def taken_in(self, folder: str) -> list[str]:
        """Folders with a kustomization that this one includes directly."""
        found = []
        for entry in entries(self.kustomization(folder)):
            path = resolve(folder, entry)
            if path is not None and path in self.kustomizations:
                found.append(path)
        return found

    def closure(self, folders: list[str]) -> dict[str, bytes]:
        """Kustomizations with all files that they use: {path: content}."""
        return taken_in(self.folder_tree, folders)

    @property
    def documents_of_argocd(self) -> tuple[ArgoDocument, ...]:
        """Applications, ApplicationSets and Flux objects, without those in chart templates."""
        return self._of_argocd[0]

    @property
    def invalid_files_of_argocd(self) -> dict[str, UsageError]:
        """{path: why it is not valid YAML} of files with such objects, without templates."""
        found = {each: invalid(self.read(each), each) for each in self._of_argocd[1]}
        return {name: error for name, error in found.items() if error}

    @cached_property
    def _of_argocd(self) -> tuple[tuple[ArgoDocument, ...], tuple[str, ...]]:
        """(documents, files that are not valid YAML)."""
        found: list[ArgoDocument] = []
        unreadable: list[str] = []
        for name in self.names:
            if not name.endswith((".yaml", ".yml", ".json")) or not self.is_searched(name):
                continue
            if not self.in_chart(name):
                text = self._text(name)
                if is_application(text) or _FLUX.search(text):
                    read = read_documents(self.read(name), name, unreadable)
                    found += map(beside_its_file, read)
        return tuple(found), tuple(unreadable)

    def config_maps(self, name: str) -> list[ArgoDocument]:
        """The ConfigMaps with a name, in files outside of charts."""
        if name not in self._config_maps:
            self._config_maps[name] = [
                each
                for path in self._files_with_config_maps
                if name.encode() in self.read(path)
                for each in read_documents(self.read(path), path)
                if each.kind == "ConfigMap" and each.name == name
            ]
        return self._config_maps[name]

    @cached_property
    def _files_with_config_maps(self) -> tuple[str, ...]:
        return tuple(
            each
            for each in self.names
            if each.endswith((".yaml", ".yml"))
            and not self.in_chart(each)
            and b"ConfigMap" in self.read(each)
        )

    @cached_property
    def cluster_secrets(self) -> tuple[ArgoDocument, ...]:
        """Argo CD's cluster Secrets."""
        return tuple(
            each
            for name in self.names
            if name.endswith((".yaml", ".yml")) and SECRET_TYPE.encode() in self.read(name)
            for each in read_documents(self.read(name), name)
            if each.kind == "Secret"
            and part(part(each.content, "metadata"), "labels").get(SECRET_TYPE) == "cluster"
        )

    def _text(self, path: str) -> str:
        try:
            return plain_text(self.read(path), path)
        except UsageError:
            return ""


def _remembering(folder_tree: FolderTree) -> Callable[[str], bytes | None]:
    """Reads files of a tree only once, up to a total size, and looks up a path without one once.

    Any text of a kustomization may be a path, so most of them have none. A file is looked at by
    each layout, and by each environment that uses it.
    """
    kept: dict[str, bytes | None] = {}
    room = _MOST_KEPT

    def read(path: str) -> bytes | None:
        nonlocal room
        if path in kept:
            return kept[path]
        content = _read(folder_tree, path)
        if content is None or len(content) <= room:
            kept[path] = content
            room -= len(content or b"")
        return content

    return read


def _read(folder_tree: FolderTree, path: str) -> bytes | None:
    """A file that is too large for a manifest is none; an app that needs it is refused later."""
    try:
        return folder_tree.read(path)
    except UsageError:
        return b""


def _without_dependencies(names: Collection[str]) -> list[str]:
    """The files without copies of Go modules and npm packages, which may contain manifests."""
    vendored = tuple(
        each.removesuffix("modules.txt")
        for each in names
        if each == "vendor/modules.txt" or each.endswith("/vendor/modules.txt")
    )
    return [
        each
        for each in names
        if not each.startswith(vendored) and "node_modules" not in each.split("/")[:-1]
    ]


def read_documents(
    content: bytes, path: str, unreadable: list[str] | None = None
) -> Iterator[ArgoDocument]:
    """The objects of a file with their lines; invalid YAML is left out.

    unreadable: receives the path if there is any.
    """
    try:
        text = plain_text(content, path)
    except UsageError:
        return
    start = 0
    for end in [*(match.start() for match in _BREAK.finditer(text)), len(text)]:
        piece = text[start:end]
        skipped = _lines_before(piece)
        try:
            found = documents(piece.encode(), path)
        except UsageError:
            found = []
            if unreadable is not None and path not in unreadable:
                unreadable.append(path)
        line = text.count("\n", 0, start) + skipped + 1
        for each in objects(found):
            yield ArgoDocument(path, line, each)
        start = end


def invalid(content: bytes, path: str) -> UsageError | None:
    """Why a file is not valid YAML; None if it is, or is a template that another tool fills."""
    try:
        documents(content, path)
    except UsageError as error:
        return None if has_template(content.decode(errors="replace")) else error
    return None


def beside_its_file(document: ArgoDocument) -> ArgoDocument:
    """The Application with paths relative to the repository instead of its own file."""
    spec = part(document.content, "spec")
    if document.kind != "Application" or not any(
        str(each.get("repoURL")).startswith(LOCAL)
        for each in (part(spec, "source"), *maps(spec, "sources"))
    ):
        return document

    def moved(source: Mapping[str, Any]) -> Mapping[str, Any]:
        # Values files of a `ref` are relative to its URL alone, which is read later.
        return source if source.get("ref") else from_the_root(source, document.path)

    own = {"source": moved(part(spec, "source"))} if "source" in spec else {}
    several = {"sources": list(map(moved, maps(spec, "sources")))} if "sources" in spec else {}
    return replace(document, content={**document.content, "spec": {**spec, **own, **several}})


def from_the_root(source: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """A source beside the Application's file, with its path in the repository."""
    url = str(source.get("repoURL"))
    beside = join(url.removeprefix(LOCAL), str(source.get("path") or ""))
    path = resolve(file.rpartition("/")[0], beside)
    if not url.startswith(LOCAL) or path is None:
        return source
    return {**source, "repoURL": LOCAL, "path": path}


def _lines_before(piece: str) -> int:
    """Number of lines before a piece's first key."""
    for number, line in enumerate(piece.split("\n")):
        if line.strip() and not line.startswith(("---", "#")):
            return number
    return 0


def declares_flux(content: bytes) -> bool:
    """Whether a file has objects of Flux, patches of them, or their CRDs.

    Its labels and annotations don't count: any object that it deploys can have them.
    """
    return _OF_FLUX.search(content) is not None


def is_application(text: str) -> bool:
    """Whether a text looks like an Application or ApplicationSet of Argo CD, valid or not."""
    return bool(_ARGO.search(text) and _APPLICATION.search(text))
