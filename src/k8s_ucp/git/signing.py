"""Commits that fast-import can't write: signed ones (`commit.gpgSign`), and other parents."""

from __future__ import annotations

from k8s_ucp.git.objects import CommitIdentity
from k8s_ucp.git.repository import Repository

SIGNING_SECONDS = 60.0
"""A key on a token may want a touch."""


def signs_commits(repository: Repository) -> bool:
    """git is told to sign every commit here."""
    found = repository.git("config", "--type=bool", "--get", "commit.gpgSign", codes=(0, 1))
    return found.strip() == b"true"


def write_commit_of(
    repository: Repository,
    source: str,
    message: str,
    parents: tuple[str, ...],
    identity: CommitIdentity,
    *,
    sign: bool,
) -> str:
    """A commit with the files of `source`, signed as git is set up for it if asked to: its id.

    The way for OpenPGP, SSH and X.509 alike. Raises GitFailed with what the signing program said.
    """
    who = [
        f"{role}.{part}={value}"
        for role, person in (("author", identity.author), ("committer", identity.committer))
        for part, value in (("name", person.name), ("email", person.email))
    ]
    written = repository.git(
        *(word for each in who for word in ("-c", each)),
        "commit-tree", *(["-S"] if sign else []),
        *(word for each in parents for word in ("-p", each)), f"{source}^{{tree}}",
        stdin=message.encode(),
        timeout=SIGNING_SECONDS,
    )  # fmt: skip
    return written.decode().strip()
