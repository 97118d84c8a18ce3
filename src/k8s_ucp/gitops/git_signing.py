"""Signed commits, where the user's git is set up for them (`commit.gpgSign`)."""

from __future__ import annotations

from k8s_ucp.gitops.objects import Identity
from k8s_ucp.gitops.repository import Repository

SIGNING_SECONDS = 60.0
"""A key on a token may want a touch."""


def signs_commits(repository: Repository) -> bool:
    """git is told to sign every commit here."""
    found = repository.git("config", "--type=bool", "--get", "commit.gpgSign", codes=(0, 1))
    return found.strip() == b"true"


def sign_commit(
    repository: Repository, commit: str, message: str, parents: tuple[str, ...], identity: Identity
) -> str:
    """The same commit with the signature that git is set up for (OpenPGP, SSH, X.509): its id.

    Raises GitFailed with what the signing program said.
    """
    who = [
        f"{role}.{part}={value}"
        for role, person in (("author", identity.author), ("committer", identity.committer))
        for part, value in (("name", person.name), ("email", person.email))
    ]
    signed = repository.git(
        *(word for each in who for word in ("-c", each)),
        "commit-tree", "-S", *(word for each in parents for word in ("-p", each)),
        f"{commit}^{{tree}}",
        stdin=message.encode(),
        timeout=SIGNING_SECONDS,
    )  # fmt: skip
    return signed.decode().strip()
