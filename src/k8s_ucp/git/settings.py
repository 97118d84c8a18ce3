"""Which of the user's git settings apply in repositories that ucp created. Pure.

Who they are and how they are let in is theirs. Line ends, filters, other addresses for a remote
and the like would change what we write: for those a file beside the repository stands in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FILE = "k8s-ucp.gitconfig"
"""In the git folder of a repository that we made: its presence says so."""
LOCAL = "# Written by k8s-ucp. For a repository whose remote is on this machine.\n"
ELSEWHERE = "# Written by k8s-ucp. For a repository whose remote is elsewhere.\n"

_PERSON = ("user.", "author.", "committer.", "credential.", "gpg.", "commit.gpgsign", "safe.")
_NETWORK = (
    *("http.", "https.", "url.", "ssh.", "protocol."),
    *("core.sshcommand", "core.askpass", "core.gitproxy"),
)
_SCOPES = ("system", "global")


def settings_file(folder: Path) -> Path | None:
    """Where the file of a repository is; None for a repository that we did not make."""
    for place in (folder / ".git" / FILE, folder / FILE):
        if place.is_file():
            return place
    return None


def is_local(text: str) -> bool:
    """The remote of a repository with this file is on this machine."""
    return text.startswith(LOCAL)


def chosen(listing: bytes, *, local: bool) -> str:
    """The file's text. listing: `git config --null --list --show-scope`, seen as the person."""
    taken = _PERSON if local else (*_PERSON, *_NETWORK)
    lines = []
    for scope, name, value in _entries(listing):
        if scope in _SCOPES and name.startswith(taken):
            lines.append(_written(name, value))
    return (LOCAL if local else ELSEWHERE) + "".join(lines)


def _entries(listing: bytes) -> Iterator[tuple[str, str, str | None]]:
    words = listing.decode("utf-8", "surrogateescape").split("\0")
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        name, separator, value = entry.partition("\n")
        yield scope, name, value if separator else None


def _written(name: str, value: str | None) -> str:
    section, _, rest = name.partition(".")
    middle, _, key = rest.rpartition(".")
    head = f'[{section} "{_escaped(middle)}"]' if middle else f"[{section}]"
    if value is None:
        return f"{head}\n\t{key}\n"
    text = _escaped(value).replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
    return f'{head}\n\t{key} = "{text}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
