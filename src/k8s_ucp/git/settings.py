"""Which of the user's git settings apply in repositories that ucp created. Pure.

Identity and authentication remain the user's. Settings such as line endings, filters and other URLs
for a remote would change what ucp writes: a file in the repository replaces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FILE = "k8s-ucp.gitconfig"
"""Name of the file in a repository's git folder; exists only if ucp created the repository."""
LOCAL = "# Written by k8s-ucp. For a repository whose remote is on this machine.\n"
ELSEWHERE = "# Written by k8s-ucp. For a repository whose remote is elsewhere.\n"

_PERSON = ("user.", "author.", "committer.", "credential.", "gpg.", "commit.gpgsign", "safe.")
_NETWORK = (
    *("http.", "https.", "url.", "ssh.", "protocol."),
    *("core.sshcommand", "core.askpass", "core.gitproxy"),
)
_SCOPES = ("system", "global")


def settings_file(folder: Path) -> Path | None:
    """The path of a repository's settings file; None if ucp did not create the repository."""
    for git_folder in (folder / ".git" / FILE, folder / FILE):
        if git_folder.is_file():
            return git_folder
    return None


def is_local(text: str) -> bool:
    """The repository with this settings file has its remote on this machine."""
    return text.startswith(LOCAL)


def chosen(listing: bytes, *, local: bool) -> str:
    """The file's text. listing: output of `git config --null --list --show-scope` as the user."""
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
