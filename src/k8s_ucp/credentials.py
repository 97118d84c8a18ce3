"""Reads credentials of clouds and git from a file, a variable or 1Password into memory.

They are validated. Nothing here writes one to disk, and errors never quote the content: they name
the source, the missing key and the expected format. argv contains only references.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.clouds import CLOUDS, CredentialForm, is_token, read_object
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing, UcpError, command_line
from k8s_ucp.process import run
from k8s_ucp.redaction import HIDDEN
from k8s_ucp.workspace.files import ExposedFile, read_private_text

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology
    from k8s_ucp.workspace import Workspace

OP_SECONDS = 60.0
"""For 1Password, which may ask the user to unlock it."""
MAXIMUM_BYTES = 64 * 1024


class BadCredential(UcpError):
    """A credential that is missing, or not in the format that its cloud expects."""


@dataclass(frozen=True)
class CredentialRef:
    """The source of a credential; one of the three is set.

    file: absolute path. variable: of the environment. reference: op://vault/item/field.
    """

    file: Path | None = None
    variable: str | None = None
    reference: str | None = None

    def __str__(self) -> str:
        if self.variable:
            # It could be a token that was pasted in place of a name.
            known = self.variable in os.environ or _NAME.fullmatch(self.variable)
            return f"the variable {self.variable if known else self.variable[:3] + HIDDEN}"
        return self.reference or str(self.file)


_NAME = re.compile(r"(?!AKIA|ASIA)[A-Z_][A-Z0-9_]{0,47}")
"""Valid names of variables, but not the beginnings of cloud keys and forge tokens."""


def credential_ref(topology: Topology, workspace: Workspace, name: str) -> CredentialRef:
    """Source of a credential. name: of a cloud, or as given in `spec.git`."""
    source = getattr(topology.spec.credentials, name, None)
    if source is not None and source.env:
        return CredentialRef(variable=source.env)
    if source is not None and source.onepassword:
        return CredentialRef(reference=source.onepassword)
    if source is not None and source.file:
        return CredentialRef(file=workspace.root / source.file)
    file = CLOUDS[name].file if name in CLOUDS else f"{name}.token"
    return CredentialRef(file=workspace.credentials / file)


def credential_files(folder: Path) -> list[Path]:
    """Sorted files of the folder `creds/`, without README and examples.

    Raises UcpError if the folder can't be read.
    """
    try:
        return sorted(
            each
            for each in (folder.iterdir() if folder.is_dir() else ())
            if each.is_file()
            and not each.name.startswith((".", "README"))
            and "example" not in each.name
        )
    except OSError as error:
        raise UcpError(
            f"the credentials in {folder} can't be read: {error.strerror}",
            next=command_line("chmod", "u+rwx", folder),
        ) from error


def all_files(topology: Topology, workspace: Workspace) -> list[Path]:
    """Those, and the ones elsewhere in the workspace that `spec.credentials` names."""
    named = (
        workspace.root / each.file for _, each in topology.spec.credentials if each and each.file
    )
    found = (each for each in named if each.is_file())
    return sorted({*credential_files(workspace.credentials), *found})


def exposed_files(folder: Path) -> list[Path]:
    """Files of the folder `creds/` that the group or others can read."""
    return [each for each in credential_files(folder) if each.stat().st_mode & 0o077]


def load(cloud: str, ref: CredentialRef) -> str:
    """The credential in the format of Crossplane's provider. Raises BadCredential."""
    return _load(cloud, ref, CLOUDS[cloud].credential)


def load_login(name: str, ref: CredentialRef) -> tuple[str, str]:
    """(user name, or empty; password or token). Raises BadCredential."""
    login = json.loads(_load(name, ref, _LOGIN))
    return login["username"], login["password"]


def _load(name: str, ref: CredentialRef, form: CredentialForm) -> str:
    text = _read(name, ref, form)
    try:
        return form.normalize(text)
    except ValueError as error:
        raise _bad(name, ref, str(error), form) from None


def _read(cloud: str, ref: CredentialRef, form: CredentialForm) -> str:
    if ref.variable:
        text = os.environ.get(ref.variable, "")
    elif ref.reference:
        text = _from_onepassword(cloud, ref.reference)
    else:
        assert ref.file
        text = _from_file(cloud, ref, ref.file, form)
    if not text.strip():
        raise _bad(cloud, ref, "it does not exist", form)
    return text


def _from_file(cloud: str, ref: CredentialRef, file: Path, form: CredentialForm) -> str:
    if ".." in file.parts:
        # A shared ucp.yaml could otherwise name any file of whoever runs it.
        raise _bad(cloud, ref, "its path contains '..' and may leave the workspace", form)
    try:
        return read_private_text(file, MAXIMUM_BYTES)
    except ExposedFile as error:
        what = f"the credential of {cloud}: {error.message}"
        raise BadCredential(what, next=error.next) from None
    except FileNotFoundError:
        raise _bad(cloud, ref, "the file does not exist", form) from None
    except OSError as error:
        raise _bad(cloud, ref, f"it can't be read: {error.strerror}", form) from None
    except ValueError as error:
        raise _bad(cloud, ref, str(error), form) from None


def _from_onepassword(cloud: str, reference: str) -> str:
    what = f"the credential of {cloud}: the 1Password CLI failed to read {reference}"
    try:
        return run(["op", "read", "--no-newline", reference], timeout=OP_SECONDS)
    except ProgramMissing as error:
        raise BadCredential(
            f"{what}: the program op is not installed",
            next="install the 1Password CLI, or set another source in spec.credentials",
        ) from error
    except (CommandFailed, DeadlineExceeded) as error:
        # Its output is left out, because it may contain part of the secret.
        ended = "timed out" if isinstance(error, DeadlineExceeded) else "it failed"
        raise BadCredential(
            f"{what}: {ended}", next=command_line("op", "read", reference)
        ) from None


def _bad(cloud: str, ref: CredentialRef, why: str, form: CredentialForm) -> BadCredential:
    if ref.file:
        advice = (
            f"write it to this file ({command_line('chmod', 600, ref.file)}), or set another source"
        )
    else:
        advice = "set the variable, or set another source"
    return BadCredential(
        f"invalid credential of {cloud} in {ref}: {why}; expected {form.expected}",
        next=f"{advice} in spec.credentials.{cloud} of ucp.yaml",
    )


def _login(text: str) -> str:
    text = text.strip()
    if text.startswith("{"):
        value = read_object(text, "username", "password")
        return json.dumps({key: value[key] for key in ("username", "password")})
    if not is_token(text):
        raise ValueError("it is not a valid token")
    return json.dumps({"username": "", "password": text})


_LOGIN = CredentialForm("an access token, or JSON with username and password", _login)
