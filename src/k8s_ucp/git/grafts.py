"""The history of some files of another repository, as commits that a merge here may name.

git exports the commits that touch them, their paths are moved to where the files lie here, and git
imports the result: authors, dates and messages stay, ids change, all else stays out.
"""

from __future__ import annotations

import ast
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.objects import quoted_path
from k8s_ucp.git.repository import NETWORK_SECONDS, Repository, run_git

_KEPT = "refs/heads/kept"
_SUBMODULE = b"160000"


def fetch_history(url: str, commit: str, folder: Path, credential: Credential | None) -> Repository:
    """A bare repository in an empty folder, with a commit and everything before it.

    Raises UcpError, also where the history there ends early.
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
    places: Callable[[str], Sequence[str]],
    into: Repository,
) -> str | None:
    """Write the commits that touch some files, without a ref: the id of the newest.

    paths: pathspecs of the files. places: where a file lies here; nowhere where it is left out.
    None where no commit touches them. Raises GitFailed.
    """
    words = ("fast-export", "--signed-tags=strip", "--reencode=yes", _KEPT, "--", *paths)
    ref = f"refs/ucp-pending/{uuid.uuid4().hex}"
    stream = source.git(*words, timeout=NETWORK_SECONDS)
    sha256 = into.git("rev-parse", "--show-object-format").strip() == b"sha256"
    moved = list(move(stream, ref, places, length=64 if sha256 else 40))
    if len(moved) == 1:
        return None
    return into.git("fast-import", "--quiet", "--done", stdin=b"".join(moved)).decode().split()[-1]


def move(
    stream: bytes, ref: str, places: Callable[[str], Sequence[str]], *, length: int = 40
) -> Iterator[bytes]:
    """A stream of `git fast-export` with other paths and another ref, for `git fast-import`. Pure.

    At its end it asks for the newest commit, and drops the ref. length: digits of ids there.
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
            if mode != _SUBMODULE:
                for place in places(_path(path)):
                    yield b"M %s %s " % (mode, entry) + quoted_path(place) + b"\n"
        elif word == b"D":
            for place in places(_path(line[2:].rstrip(b"\n"))):
                yield b"D " + quoted_path(place) + b"\n"
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
