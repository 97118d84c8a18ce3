"""The door to age: the key in creds/backup.key, and what it closes and opens.

The file has age-keygen's own form, so that `age -d -i creds/backup.key` opens a backup without us.
pyrage is imported when something is closed or opened, never before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import FOLDER_MODE, write_private_file

_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105 (how the line begins)
_FORM = """\
# The backup key of k8s-ucp: it opens backup/state.age of the core repository.
# Keep a copy in another place, and keep it secret: without it that backup is lost.
# public key: {public}
{secret}
"""
_IGNORED = "*\n!README.md\n!*.example\n"


class BadKey(UcpError):
    """A key that is none, or not the one that the backup was closed with."""


@dataclass(frozen=True)
class BackupKey:
    """path: where it lies, for errors."""

    path: Path
    _secret: str = field(repr=False)

    def close(self, text: bytes) -> bytes:
        """Encrypted to this key, as ASCII; two calls never give the same."""
        import pyrage

        identity = pyrage.x25519.Identity.from_str(self._secret)
        sealed: bytes = pyrage.encrypt(text, [identity.to_public()], armored=True)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """What was closed. Raises BadKey."""
        import pyrage

        try:
            text: bytes = pyrage.decrypt(sealed, [pyrage.x25519.Identity.from_str(self._secret)])
        except pyrage.DecryptError as error:
            raise BadKey(
                f"the key {self.path} can't decrypt the backup in the core repository: {error}",
                next=f"restore the key that the backup was encrypted with to {self.path}",
            ) from None
        return text


def load_key(path: Path) -> BackupKey | None:
    """The key in a file, None where there is no file. Raises BadKey."""
    try:
        lines = path.read_text("utf-8-sig").split()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        lines = []
    found = [each for each in lines if each.startswith(_SECRET)]
    if len(found) == 1:
        import pyrage

        with contextlib.suppress(pyrage.IdentityError):
            pyrage.x25519.Identity.from_str(found[0])
            return BackupKey(path, found[0])
    raise BadKey(
        f"{path} is not a valid backup key: expected a line {_SECRET}…",
        next=f"restore a copy of the key to {path}",
    )


def key_for(path: Path, waiting: Callable[[], bool]) -> BackupKey:
    """The key; made where there is none, and never written over. Raises BadKey, UcpError.

    waiting: there is a backup already, which a new key would not open.
    """
    known = load_key(path)
    if known:
        return known
    if waiting():
        raise missing(path)
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    text = _FORM.format(public=identity.to_public(), secret=identity)
    try:
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        write_private_file(path.parent / ".gitignore", _IGNORED, replace=False)
        write_private_file(path, text, replace=False)
    except OSError as error:
        raise UcpError(
            f"failed to write the backup key {path}: {error.strerror}",
            next=f"make the folder {path.parent} writable",
        ) from error
    # Another start may have been quicker: what lies there now counts.
    made = load_key(path)
    assert made is not None, "it was just created"
    return made


def missing(path: Path) -> BadKey:
    """There is a backup and no key."""
    return BadKey(
        f"the core repository has a backup of passwords, but its key {path} is missing",
        next=(
            f"restore your copy of the key to {path}; without a copy the passwords are "
            "lost, and so are the names of cloud resources, which would be created a second time: "
            "delete backup/state.age from the core repository by a commit to have new ones "
            "generated"
        ),
    )
