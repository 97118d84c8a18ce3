"""Files that a kustomization or a chart uses, on this machine, hidden and outside ones too. Pure.

Folders are paths relative to the root of the available files; "" is the root itself.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS, Files
from k8s_ucp.gitops.manifests.yaml_text import first_map

_LISTS = ("resources", "bases", "components")
"""Keys of a kustomization with folders and files that it can't be built without."""
_SUBMODULE = re.compile(r"^[ \t]*+path[ \t]*+=(.*)$", re.MULTILINE)
_READ = re.compile(rb"\.Files\.(?:Get|GetBytes|Lines)[ \t]+[\"`]([^\"`\n]+)[\"`]")
"""Reads a file of its chart by name."""
_FIND = re.compile(rb"\.Files\.Glob[ \t]+[\"`]([^\"`\n]+)[\"`]")
_OF_FINDER = ".DS_Store"
"""A file that macOS makes in any folder."""
_TEMPLATE = re.compile(r"((?:charts/[^/]+/)*)templates/")
_SETTINGS = ".argocd-source"
"""How the files begin from which Argo CD reads how to render a folder."""
CLONE_ALL = "give the folder of a clone: git clone --recurse-submodules"
"""What to do about files in submodules, which are other repositories."""


@dataclass(frozen=True)
class FolderTree:
    """A tree of folders, with functions to list the files below a folder and to read them."""

    names: Callable[[str], list[str]]
    """Paths of the files below a folder, relative to it."""
    read: Callable[[str], bytes | None]
    """The content of a file; None if it doesn't exist."""
    hidden: Callable[[str], list[str]] = lambda _: []
    """Paths of the hidden files below a folder, relative to it."""
    links: Callable[[str], Mapping[str, str]] = lambda _: {}
    """{path relative to a folder: folder of the tree} of the symbolic links to folders below it."""

    def below(self, folder: str) -> dict[str, bytes]:
        """{path relative to the folder: content}."""
        found = {name: self.read(join(folder, name)) for name in self.names(folder)}
        return {name: content for name, content in found.items() if content is not None}

    def below_as_helm(self, folder: str) -> dict[str, bytes]:
        """As `below`, also with the files of folders that symbolic links lead to.

        Links within these are not followed: a few could stand for any number of files.
        """
        found = self.below(folder)
        for link, target in self.links(folder).items():
            if not within(join(folder, link), target):
                found |= {join(link, name): text for name, text in self.below(target).items()}
        return found


def taken_in(folder_tree: FolderTree, folders: Collection[str]) -> dict[str, bytes]:
    """Kustomizations with all files that they use, anywhere in the tree: {path: content}.

    Missing files are left out; kustomize reports them. So are git's settings, which may contain a
    password, and hidden files outside of a kustomization's folder: others write the texts that name
    files.
    """
    files: dict[str, bytes] = {}
    waiting, seen = list(folders), set[str]()
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        for name in KUSTOMIZATIONS:
            if (content := folder_tree.read(join(folder, name))) is not None:
                files[join(folder, name)] = content
                break
        for text in _texts(kustomization(files, folder)):
            path = resolve(folder, text)
            if path is None or path in files or not _may_be_read(path, folder):
                continue
            if (content := folder_tree.read(path)) is not None:
                files[path] = content
            else:
                names = (join(path, name) for name in KUSTOMIZATIONS)
                waiting += (
                    [path] if any(folder_tree.read(each) is not None for each in names) else []
                )
    return files


def hidden_files_of_chart(folder_tree: FolderTree, folder: str, files: Files) -> dict[str, bytes]:
    """{path relative to the chart: content} of hidden files that its templates read or find.

    files: those of the chart that aren't hidden.
    """
    named: set[str] = set()
    patterns = []
    for name, content in files.items():
        if not (template := _TEMPLATE.match(name)):
            continue
        texts = (each.decode("utf-8", "replace") for each in _READ.findall(content))
        named |= {path for each in texts if (path := resolve(template[1], each))}
        globs = (each.decode("utf-8", "replace") for each in _FIND.findall(content))
        patterns += [(template[1], one) for each in globs for one in _alternatives(each)]
    if patterns:
        named |= {
            path
            for path in folder_tree.hidden(folder)
            if posixpath.basename(path) != _OF_FINDER
            and any(
                path.startswith(chart) and _matches(one, path.removeprefix(chart))
                for chart, one in patterns
            )
        }
    found: dict[str, bytes] = {}
    for path in sorted(named):
        if _is_plain(path) or not _may_be_read(path, "") or _SETTINGS in path:
            continue
        if (read := folder_tree.read(join(folder, path))) is not None:
            found[path] = read
    return found


def _alternatives(glob: str) -> list[str]:
    """The globs that one with words in braces stands for."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", glob)
    return [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")] if found else [glob]


def _matches(glob: str, path: str) -> bool:
    """Whether helm's glob matches a path, except its ranges of characters.

    Not by a regular expression: with many stars, which a chart may have, one would take years.
    """
    ends = {0}
    for each in filter(None, re.split(r"(\*\*|[*?])", glob)):
        if each == "**":
            ends = set(range(min(ends), len(path) + 1))
        elif each == "*":
            ends = {end for start in ends for end in range(start, _segment_end(path, start) + 1)}
        elif each == "?":
            ends = {end + 1 for end in ends if path[end : end + 1] not in ("", "/")}
        else:
            ends = {end + len(each) for end in ends if path.startswith(each, end)}
        if not ends:
            return False
    return len(path) in ends


def _segment_end(path: str, start: int) -> int:
    end = path.find("/", start)
    return len(path) if end < 0 else end


def files_called(folder_tree: FolderTree, folder: str, name: str) -> list[str]:
    """Paths, relative to the folder, of the files with a name in it and in the folders below."""
    parents = {"", *(each.rpartition("/")[0] for each in folder_tree.names(folder))}
    found = sorted(join(each, name) for each in parents)
    return [each for each in found if folder_tree.read(join(folder, each)) is not None]


def beyond(folder_tree: FolderTree, folder: str) -> tuple[str, str] | None:
    """The first (kustomization, folder or file that it lists) outside of the tree.

    Of the folder's own kustomization, and of those that it uses.
    """
    files = taken_in(folder_tree, [folder])
    for used in (path.rpartition("/")[0] for path in sorted(files)):
        listed = kustomization(files, used)
        for each in (text for key in _LISTS for text in _texts(listed.get(key))):
            if each.startswith("../") and resolve(used, each) is None:
                return used, each
    return None


def submodule_of(folder_tree: FolderTree, path: str) -> str | None:
    """The git submodule with a path of the tree, if the submodule's files aren't in the tree."""
    return _module_with(path, _absent_submodules(folder_tree))


def _absent_submodules(folder_tree: FolderTree) -> list[str]:
    settings = (folder_tree.read(".gitmodules") or b"").decode("utf-8", "replace")
    modules = (each.strip() for each in _SUBMODULE.findall(settings))
    return [each for each in modules if each and not folder_tree.names(each)]


def _module_with(path: str, modules: Iterable[str]) -> str | None:
    return next((each for each in modules if within(path, each)), None)


def refuse_submodules(folder_tree: FolderTree, files: Files) -> None:
    """Raise UsageError if kustomizations list something in a submodule that isn't in the tree."""
    absent = _absent_submodules(folder_tree)
    if not absent:
        return
    for folder in {path.rpartition("/")[0] for path in files}:
        listed = kustomization(files, folder)
        for each in (text for key in _LISTS for text in _texts(listed.get(key))):
            path = resolve(folder, each)
            if path is not None and (module := _module_with(path, absent)):
                raise UsageError(
                    f"the kustomization {folder or '.'} lists {each}, which is in the git "
                    f"submodule {module}",
                    next=CLONE_ALL,
                )


def _may_be_read(path: str, folder: str) -> bool:
    return ".git" not in path.split("/") and (within(path, folder) or _is_plain(path))


def _is_plain(path: str) -> bool:
    return not any(each.startswith(".") for each in path.split("/"))


def moved_up(files: Files, folder: str) -> tuple[str, dict[str, bytes]]:
    """(folder, files) relative to the deepest common parent folder of all of them."""
    root = posixpath.commonpath([f"/{folder}", *(f"/{each.rpartition('/')[0]}" for each in files)])
    start = root.strip("/")
    start += "/" if start else ""
    return folder.removeprefix(start.rstrip("/")).strip("/"), {
        path.removeprefix(start): content for path, content in files.items()
    }


def kustomization(files: Files, folder: str) -> Mapping[str, Any]:
    """The kustomization of a folder; empty if it is missing or can't be parsed."""
    for name in KUSTOMIZATIONS:
        path = join(folder, name)
        if path in files:
            try:
                return first_map(files[path], path)
            except UsageError:
                return {}
    return {}


def _texts(value: Any) -> Iterator[str]:
    """All strings in a value that may be paths. Entries of `files` may be `key=path`."""
    if isinstance(value, str):
        if "\n" not in value and "\0" not in value and "://" not in value:
            yield value.partition("=")[2] or value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it; "" is the whole tree."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def join(folder: str, name: str) -> str:
    """A path in a tree, of which a folder or a name may be ""."""
    return f"{folder}/{name}".strip("/")


def resolve(folder: str, entry: str) -> str | None:
    """A path relative to a folder; None if it is outside of the tree or a URL."""
    if "://" in entry or "\n" in entry or entry.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(folder, entry))
    return None if path == ".." or path.startswith("../") else "" if path == "." else path
