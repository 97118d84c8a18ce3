"""Files of a git repository at one commit, fetched once and kept in the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.git.clones import replaceable
from k8s_ucp.git.command import MOST_BYTES, NETWORK_SECONDS, run_git
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import GitFailed, TooMuchOutput
from k8s_ucp.git.objects import SYMBOLIC_LINK, TreeEntry
from k8s_ucp.git.repository import Repository, read_refs
from k8s_ucp.gitops.manifests.reachable import FolderTree, resolve

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def find_commit(url: str, revision: str | None, credential: Credential | None) -> str:
    """The commit of a branch, tag or commit id; None: of the default branch.

    Raises UcpError.
    """
    if revision and _COMMIT.fullmatch(revision):
        return revision
    wanted = revision or "HEAD"
    listed = run_git(
        ("ls-remote", "--", url), where=url, timeout=NETWORK_SECONDS, credential=credential
    )
    refs = read_refs(listed)
    candidates = (f"refs/tags/{wanted}^{{}}", f"refs/tags/{wanted}", f"refs/heads/{wanted}", wanted)
    for ref in candidates:
        if ref in refs:
            return refs[ref]
    names = sorted(each.removeprefix("refs/heads/") for each in refs if "refs/heads/" in each)
    if not names:
        raise UcpError(f"{url} has no branches", next="correct the URL, or push a commit there")
    what = f"branch and no tag {revision}" if revision else "default branch"
    raise UcpError(
        f"{url} has no {what}; its branches: {some_of(names, 8)}",
        next="name one by --revision, or a whole commit id",
    )


def open_commit(url: str, commit: str, cache: Path, credential: Credential | None) -> FolderTree:
    """The files of a repository at a commit. Raises UcpError."""
    name = hashlib.sha256(url.encode()).hexdigest()[:20]
    folder = cache / "sources" / f"{name}.git"
    repository = Repository(folder, credential=credential)
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run_git(("init", "--quiet", "--bare", str(folder)), where=str(folder))
    kept = f"refs/ucp/{commit}"
    with _readable(repository, url):
        is_kept = repository.resolve(kept) is not None
    if not is_kept:
        _fetch(repository, url, commit)
        repository.git("update-ref", kept, commit)
    with _readable(repository, url):
        listed = repository.listing(kept)
        plain = {path: entry.id for path, entry in listed.items() if entry.mode.startswith("100")}
        linked, folders = _linked(repository, listed, plain)
    plain |= linked
    read: dict[str, bytes] = {}

    def paths(below: str) -> list[str]:
        start = f"{_followed(below, folders)}/" if below else ""
        return sorted(path.removeprefix(start) for path in plain if path.startswith(start))

    def names(below: str) -> list[str]:
        return [each for each in paths(below) if not is_hidden(each)]

    def hidden(below: str) -> list[str]:
        return [each for each in paths(below) if is_hidden(each)]

    def content(path: str) -> bytes | None:
        path = _followed(path, folders)
        if path not in plain:
            return None
        if plain[path] not in read:
            folder = path.rpartition("/")[0]
            ids = {id for each, id in plain.items() if each.rpartition("/")[0] == folder}
            with _readable(repository, url):
                read.update(repository.contents(ids))
                if sum(map(len, read.values())) > MOST_BYTES:
                    raise TooMuchOutput(url)
        return read[plain[path]]

    def links(below: str) -> dict[str, str]:
        start = f"{_followed(below, folders)}/" if below else ""
        found = {
            each.removeprefix(start): target
            for each, target in folders.items()
            if each.startswith(start)
        }
        return {each: target for each, target in found.items() if not is_hidden(each)}

    return FolderTree(names, content, hidden, links)


@contextlib.contextmanager
def _readable(repository: Repository, url: str) -> Iterator[None]:
    """Explain why the copy in the cache can't be read; delete a damaged one."""
    try:
        with replaceable(repository, f"the copy of {url} in the cache"):
            yield
    except TooMuchOutput as error:
        raise UcpError(
            f"the files of {url} are too large, or too many, to be read",
            next="clone it, and add a folder without its huge files",
        ) from error


def _linked(
    repository: Repository, listed: Mapping[str, TreeEntry], plain: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Symbolic links within the repository.

    ({path: id of the file that it leads to}, {path: folder that it leads to}).
    """
    links = {path: entry.id for path, entry in listed.items() if entry.mode == SYMBOLIC_LINK}
    if not links:
        return {}, {}
    targets = repository.contents(set(links.values()))
    above = {str(folder) for each in plain for folder in PurePosixPath(each).parents}
    files, folders = {}, {}
    for path, id in links.items():
        target = resolve(path.rpartition("/")[0], targets[id].decode("utf-8", "replace"))
        if not target or is_hidden(target):
            continue
        if target in plain:
            files[path] = plain[target]
        elif target in above:
            folders[path] = target
    return files, folders


def _followed(path: str, folders: Mapping[str, str]) -> str:
    """A path without the link to a folder that it may lead through."""
    for each in PurePosixPath(path).parents if folders else ():
        if target := folders.get(str(each)):
            return f"{target}/{path.removeprefix(f'{each}/')}"
    return folders.get(path, path)


def is_hidden(path: str) -> bool:
    """A hidden file or a file in a hidden folder, except .helmignore, which helm reads."""
    return any(part.startswith(".") and part != ".helmignore" for part in path.split("/"))


def _fetch(repository: Repository, url: str, commit: str) -> None:
    flags = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")
    try:
        repository.git(*flags, "--depth=1", "--", url, commit, timeout=NETWORK_SECONDS)
    except GitFailed:
        # Some servers only allow fetching branches and tags.
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        repository.git(*flags, "--", url, *refs, timeout=NETWORK_SECONDS)
    if repository.resolve(commit) is None:
        raise UcpError(f"{url} has no commit {commit}", next="correct the revision")
