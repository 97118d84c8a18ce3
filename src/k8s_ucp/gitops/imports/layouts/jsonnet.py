"""Tells jsonnet that may be Kubernetes objects from that of other programs. Pure."""

from __future__ import annotations

import posixpath
import re

from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import join

_IMPORT = re.compile(r"\bimport\s*[\"']([^\"']+)[\"']")
_OBJECT = re.compile(r"\bapiVersion\b")
_FIELD = re.compile(r"\w[\"']?\s*:")
_LIBRARIES = ("", "lib", "vendor")
"""Folders in which imports are looked up if nothing is beside the file."""


def folders_of_libraries(tree: RepositoryTree) -> frozenset[str]:
    """Folders into which jsonnet-bundler copies libraries, with their examples and tests."""
    found = {
        join(posixpath.dirname(each), "vendor")
        for each in tree.names
        if posixpath.basename(each) == "jsonnetfile.json"
    }
    return tree.folders & found


def may_be_objects(tree: RepositoryTree, path: str) -> bool:
    """Whether a file, or anything that it imports, names an apiVersion, or no field at all.

    Also if it imports what the repository doesn't have, such as a library of objects.
    """
    waiting, seen = [path], set[str]()
    is_empty = True
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        text = tree.read(file).decode("utf-8", "replace")
        if _OBJECT.search(text):
            return True
        is_empty = is_empty and not _FIELD.search(text)
        for name in _IMPORT.findall(text):
            folders = (posixpath.dirname(file), *_LIBRARIES)
            found = (posixpath.normpath(posixpath.join(folder, name)) for folder in folders)
            if (imported := next(filter(tree.has, found), None)) is None:
                return True
            waiting.append(imported)
    return is_empty
