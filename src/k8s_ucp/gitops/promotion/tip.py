"""Reads one commit of the app repository from git, without a work tree."""

from __future__ import annotations

from collections.abc import Iterable

from k8s_ucp.git.objects import SUBMODULE, SYMBOLIC_LINK, TreeEntry
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.reachable import within
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.gates import ENVIRONMENTS_FILE
from k8s_ucp.gitops.promotion.order import MARKS_FILE
from k8s_ucp.gitops.promotion.overlay import config_file
from k8s_ucp.gitops.promotion.targets.find import is_read


class GitTip:
    """Files of a commit. Files of `apps` that promotions need are preloaded in two git calls."""

    def __init__(self, repository: Repository, commit: str, apps: Iterable[str]) -> None:
        self.commit = commit
        self._repository = repository
        names = tuple(dict.fromkeys(apps))
        folders = [f"apps/{app}/overlays" for app in names]
        configs = [config_file(app) for app in names]
        self._listed = (*folders, ENVIRONMENTS_FILE, *configs)
        self._entries = repository.listing(commit, *self._listed)
        self._contents = repository.contents(
            entry.id
            for path, entry in self._entries.items()
            if entry.mode.startswith("100") and self._ahead(path)
        )

    def read(self, path: str) -> bytes | None:
        entry = self._entries.get(path)
        if entry is None and not any(within(path, each) for each in self._listed):
            # A file of a base, which is only read for advice.
            entry = self._repository.listing(self.commit, path).get(path)
        if entry is None:
            self._refuse_detours(path)
            return None
        _refuse_link(path, entry)
        if entry.id not in self._contents:
            self._contents.update(self._repository.contents([entry.id]))
        return self._contents[entry.id]

    def files(self, path: str) -> list[str]:
        inside = path + "/"
        return sorted(each[len(inside) :] for each in self._entries if each.startswith(inside))

    def folders(self, path: str) -> list[str]:
        listing = self._repository.git(
            "ls-tree", "-d", "-z", "--name-only", self.commit, path + "/"
        )
        names = (each.decode("utf-8", "replace") for each in listing.split(b"\0") if each)
        return sorted(name.rpartition("/")[2] for name in names)

    def mode(self, path: str) -> str | None:
        """The mode of a file; None if it doesn't exist."""
        entry = self._entries.get(path)
        return entry.mode if entry else None

    def _ahead(self, path: str) -> bool:
        """Promotions of the app may need the file."""
        if path == ENVIRONMENTS_FILE or path.rpartition("/")[2] == MARKS_FILE:
            return True
        return is_read(path.split("/", 4)[4]) if path.count("/") > 3 else False

    def _refuse_detours(self, path: str) -> None:
        """Raise NotEditable if a file is missing because a parent folder is a symbolic link."""
        folders = path.split("/")[:-1]
        inside = path.rpartition("/")[0] + "/"
        if not folders or any(each.startswith(inside) for each in self._entries):
            return
        ways = ["/".join(folders[: count + 1]) for count in range(len(folders))]
        found = self._repository.listing(self.commit, *ways, recursive=False)
        for way, entry in found.items():
            _refuse_link(way, entry)


def _refuse_link(path: str, entry: TreeEntry) -> None:
    if entry.mode == SYMBOLIC_LINK:
        raise NotEditable(
            f"{path} is a symlink in the repository, which is not followed",
            next=f"commit a real file or folder at {path}",
        )
    if entry.mode == SUBMODULE:
        raise NotEditable(f"{path} is a git submodule, which is not supported")
