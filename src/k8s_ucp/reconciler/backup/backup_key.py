"""The key in creds/backup.key; encrypts and decrypts the backup with age.

The file has age-keygen's format, so that `age -d -i creds/backup.key` decrypts a backup without
ucp. pyrage is imported only when it is used.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.reconciler.backup_content import PATH
from k8s_ucp.workspace import FOLDER_MODE, read_regular_file, write_private_file

_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105 (how the line begins)
_OTHER_KEY = "No matching keys"
"""In age's error for a whole backup that was encrypted with another key."""
_LARGEST = 64 * 1024
"""Bytes of the file."""
_FORM = """\
# The backup key of k8s-ucp: it opens backup/state.age of the core repository.
# Keep a copy elsewhere, and keep it secret: without it that backup is lost.
# public key: {public}
{secret}
"""
_IGNORED = "*\n!README.md\n!*.example\n"


class BadKey(UcpError):
    """A key that is invalid, unreadable, or not the one that the backup was encrypted with."""


@dataclass(frozen=True)
class BackupKey:
    """path: file of the key, for errors."""

    path: Path
    _secret: str = field(repr=False)

    def close(self, text: bytes) -> bytes:
        """Encrypt to this key, in ASCII armor; the result differs in every call."""
        import pyrage

        identity = pyrage.x25519.Identity.from_str(self._secret)
        sealed: bytes = pyrage.encrypt(text, [identity.to_public()], armored=True)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """Decrypt. Raises BadKey, UcpError if the backup is damaged."""
        import pyrage

        try:
            text: bytes = pyrage.decrypt(sealed, [pyrage.x25519.Identity.from_str(self._secret)])
        except pyrage.DecryptError as error:
            if _OTHER_KEY not in str(error):
                raise UcpError(
                    f"the backup in the core repository, {PATH}, is damaged: {error}",
                    next=f"restore an older version from the git history: git log -- {PATH}",
                ) from None
            raise BadKey(
                f"the key {self.path} can't decrypt the backup in the core repository: {error}",
                next=f"restore the key that the backup was encrypted with to {self.path}",
            ) from None
        return text


def load_key(path: Path) -> BackupKey | None:
    """The key in a file; None if there is no file. Raises BadKey."""
    try:
        lines = read_regular_file(path, _LARGEST).decode("utf-8-sig").split()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.EINVAL:
            # The key itself may be the right one: no copy has to replace it.
            shown = command_line("ls", "-l", path)
            raise BadKey(
                f"failed to read the backup key {path}: {error.strerror}",
                next=f"make it readable for you: {shown} shows its owner and mode",
            ) from error
        lines = []
    except UnicodeDecodeError:
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
    """The key; generated if there is none, never overwritten. Raises BadKey, UcpError.

    waiting: whether there is a backup already, which a new key could not decrypt.
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
    # Another start may have written the file first; its key is the valid one.
    made = load_key(path)
    assert made is not None, "it was just created"
    return made


def missing(path: Path) -> BadKey:
    """The error if there is a backup, but no key."""
    return BadKey(
        f"the core repository has a backup of passwords, but its key {path} is missing",
        next=(
            f"restore your copy of the key to {path}; without a copy the passwords are "
            "lost, and so are the names of cloud resources, which would be created a second time: "
            "delete backup/state.age from the core repository by a commit to have new ones "
            "generated"
        ),
    )
