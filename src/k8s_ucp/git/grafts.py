"""Imports the history of some files of another repository, for a merge commit to refer to.

Git exports the commits that change these files, the paths are rewritten to where the files are in
this repository, and git imports the result. Authors, dates and messages are kept; commit ids
change; all other files are left out.
"""

from __future__ import annotations

import ast
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.git.command import NETWORK_SECONDS, run_git
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.objects import SUBMODULE, quoted_path
from k8s_ucp.git.repository import Repository

_KEPT = "refs/heads/kept"


def fetch_history(url: str, commit: str, folder: Path, credential: Credential | None) -> Repository:
    """Fetch a commit with its whole history into a new bare repository in an empty folder.

    Raises UcpError, also if the source is a shallow clone.
    """
    run_git(("init", "--quiet", "--bare", str(folder)), where=str(folder))
    found = Repository(folder, credential=credential)
    refs = ("+refs/heads/*:refs/kept/heads/*", "+refs/tags/*:refs/kept/tags/*")
    flags = ("--quiet", "--no-tags", "--no-recurse-submodules", "--update-shallow")
    found.git("fetch", *flags, "--", url, *refs, timeout=NETWORK_SECONDS)
    if found.git("rev-parse", "--is-shallow-repository").strip() == b"true":
        raise UcpError(
            f"{url} is a shallow clone, which lacks the history",
            next="git fetch --unshallow there, or leave out --keep-history",
        )
    if found.resolve(commit) is None:
        raise UcpError(
            f"{commit} is on no branch and no tag of {url}", next="leave out --keep-history"
        )
    found.git("update-ref", _KEPT, commit)
    return found


def graft(
    source: Repository,
    paths: Sequence[str],
    new_paths: Callable[[str], Sequence[str]],
    into: Repository,
) -> str | None:
    """Import the commits that change some files, without a ref: the id of the newest one.

    paths: pathspecs of the files. new_paths: maps a path there to paths here; none leaves it out.
    Returns None if no commit changes these files. Raises GitFailed.
    """
    arguments = ("fast-export", "--signed-tags=strip", "--reencode=yes", _KEPT, "--", *paths)
    ref = f"refs/ucp-pending/{uuid.uuid4().hex}"
    stream = source.git(*arguments, timeout=NETWORK_SECONDS)
    sha256 = into.git("rev-parse", "--show-object-format").strip() == b"sha256"
    moved = list(move(stream, ref, new_paths, length=64 if sha256 else 40))
    if len(moved) == 1:
        return None
    return into.git("fast-import", "--quiet", "--done", stdin=b"".join(moved)).decode().split()[-1]


def move(
    stream: bytes, ref: str, new_paths: Callable[[str], Sequence[str]], *, length: int = 40
) -> Iterator[bytes]:
    """Rewrite paths and ref of a `git fast-export` stream for `git fast-import`. Pure.

    The last commands print the id of the newest commit and delete the ref. length: hex digits of
    the object ids.
    """
    at, newest, in_commit = 0, b"", False
    while at < len(stream):
        end = stream.index(b"\n", at) + 1
        line = stream[at:end]
        at = end
        word = line.partition(b" ")[0].strip()
        if word == b"data":
            size = int(line[5:])
            yield line + stream[at : at + size]
            at += size
        elif word in (b"commit", b"reset"):
            in_commit = word == b"commit"
            yield b"%s %s\n" % (word, ref.encode())
        elif word in (b"blob", b"tag"):
            in_commit = False
            yield line
        elif word == b"mark":
            newest = line[5:].strip() if in_commit else newest
            yield line
        elif word == b"M":
            _, mode, entry, path = line.rstrip(b"\n").split(b" ", 3)
            if mode != SUBMODULE.encode():
                for new_path in new_paths(_path(path)):
                    yield b"M %s %s " % (mode, entry) + quoted_path(new_path) + b"\n"
        elif word == b"D":
            for new_path in new_paths(_path(line[2:].rstrip(b"\n"))):
                yield b"D " + quoted_path(new_path) + b"\n"
        elif word != b"done":
            yield line
    if newest:
        yield b"get-mark %s\n" % newest
        yield b"reset %s\nfrom %s\n\n" % (ref.encode(), b"0" * length)
    yield b"done\n"


def _path(text: bytes) -> str:
    if text.startswith(b'"'):
        text = ast.literal_eval("b" + text.decode("ascii"))
    return text.decode("utf-8", "surrogateescape")
