"""Computes object ids of files and trees without git, and writes commits for fast-import.

Pure. Computing an id costs a hash; asking git for it costs a process, and reading the file from git
another one. So a render can be compared with a repository by ids alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FILE = "100644"
FOLDER = "40000"
SYMBOLIC_LINK = "120000"
SUBMODULE = "160000"


@dataclass(frozen=True)
class TreeEntry:
    """A file in a tree: mode (FILE, "100755", SYMBOLIC_LINK, SUBMODULE) and object id."""

    mode: str
    id: str


@dataclass(frozen=True)
class Author:
    """Name and email of a commit's author; `<`, `>` and unprintable characters are removed."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{_plain(self.name) or 'unknown'} <{_plain(self.email)}>"


@dataclass(frozen=True)
class CommitIdentity:
    """Author and committer of commits made here."""

    author: Author
    committer: Author


@dataclass(frozen=True)
class Commit:
    """A commit of the history."""

    id: str
    parents: tuple[str, ...]
    author: Author
    message: str


_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the last one that a timestamp can have."""
COMMIT_FORMAT = "%H%n%P%n%an%n%ae%n%B"
"""Format for `git log`, which commit_of parses."""


def commit_of(record: str) -> Commit:
    """Parse a commit that `git log` printed in COMMIT_FORMAT."""
    id, parents, author, email, message = record.split("\n", 4)
    return Commit(id, tuple(parents.split()), Author(author, email), message.strip())


def commit_time(text: str) -> int:
    """Seconds since the epoch of a commit, as `git log` prints them (%ct).

    0, as in git's own dates, if there is no such time: whoever pushes can write any.
    """
    seconds = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else 0
    return seconds if seconds <= _LAST_SECOND else 0


Change = bytes | TreeEntry | None
"""New content of a file, an object that the repository already has, or None: delete the file."""


@dataclass(frozen=True)
class NewCommit:
    """A commit to write: `changes` applied to the files of the first parent, if there is one."""

    message: str
    changes: Mapping[str, Change]
    parents: tuple[str, ...] = ()
    modes: Mapping[str, str] | None = None
    """Modes of changed files other than `100644`, by path."""


def blob_id(content: bytes, *, length: int = 40) -> str:
    """Git's object id of a file with this content (length 64: a SHA-256 repository)."""
    return _digest(b"blob", content, length)


def tree_id(files: Mapping[str, bytes], *, length: int = 40) -> str:
    """Git's object id of a tree with exactly these files, all of mode 100644."""
    root: dict[str, object] = {}
    for path, content in files.items():
        *folders, name = path.split("/")
        tree = root
        for folder in folders:
            tree = tree.setdefault(folder, {})  # type: ignore[assignment]
        tree[name] = content
    return _tree(root, length)


def _tree(folder: Mapping[str, object], length: int) -> str:
    lines = []
    for name, item in folder.items():
        raw = _path(name)
        if isinstance(item, bytes):
            lines.append((raw, FILE.encode(), raw, blob_id(item, length=length)))
        else:
            # Git sorts a folder as if its name ended with a slash.
            below = _tree(item, length)  # type: ignore[arg-type]
            lines.append((raw + b"/", FOLDER.encode(), raw, below))
    data = b"".join(
        mode + b" " + raw + b"\0" + bytes.fromhex(id) for _, mode, raw, id in sorted(lines)
    )
    return _digest(b"tree", data, length)


def _digest(kind: bytes, data: bytes, length: int) -> str:
    maker = hashlib.sha256 if length == 64 else hashlib.sha1
    digest = maker(kind + b" %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def import_stream(
    commits: Sequence[NewCommit], *, identity: CommitIdentity, time: int, ref: str, length: int = 40
) -> bytes:
    """Input for `git fast-import` that writes these commits; it prints their ids, one per line.

    time: seconds since the epoch. ref: a name that nothing else uses, deleted at the end. length:
    hex digits of the repository's object ids.
    """
    out: list[bytes] = []
    marks: dict[bytes, int] = {}
    for commit in commits:
        for content in commit.changes.values():
            if isinstance(content, bytes) and content not in marks:
                marks[content] = len(marks) + 1
                out.append(b"blob\nmark :%d\n" % marks[content] + _data(content))
    first = len(marks) + 1
    for mark, commit in enumerate(commits, start=first):
        # Without a reset, a commit without parents would get the previous commit of this ref as
        # parent.
        out.append(b"reset %s\n" % ref.encode() if not commit.parents else b"")
        out.append(b"commit %s\nmark :%d\n" % (ref.encode(), mark))
        out.append(f"author {identity.author} {time} +0000\n".encode())
        out.append(f"committer {identity.committer} {time} +0000\n".encode())
        out.append(_data(commit.message.encode()))
        for number, parent in enumerate(commit.parents):
            out.append(f"{'merge' if number else 'from'} {parent}\n".encode())
        modes = commit.modes or {}
        # Deletions first, because a file may be replaced by a folder or the other way round.
        for path, change in sorted(commit.changes.items(), key=lambda each: each[1] is not None):
            out.append(_change(path, change, modes.get(path, FILE), marks))
        out.append(b"\n")
    out += [b"get-mark :%d\n" % mark for mark in range(first, first + len(commits))]
    out.append(b"reset %s\nfrom %s\ndone\n" % (ref.encode(), b"0" * length))
    return b"".join(out)


def _change(path: str, content: Change, mode: str, marks: Mapping[bytes, int]) -> bytes:
    if content is None:
        return b"D " + quoted_path(path) + b"\n"
    if isinstance(content, TreeEntry):
        return f"M {content.mode} {content.id} ".encode() + quoted_path(path) + b"\n"
    return b"M %s :%d " % (mode.encode(), marks[content]) + quoted_path(path) + b"\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n" % len(content) + content + b"\n"


def quoted_path(path: str) -> bytes:
    """A path quoted for fast-import, whatever characters it contains."""
    raw = _path(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def _path(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _plain(text: str) -> str:
    return "".join(each for each in text if each not in "<>" and each.isprintable()).strip()
