"""What distinguishes a workspace from all others: the creator that its clusters are marked with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_ucp import locks
from k8s_ucp.errors import command_line
from k8s_ucp.workspace.files import (
    hide_from_git,
    read_regular_file,
    write_private_json,
    writing,
)
from k8s_ucp.workspace.folders import digest
from k8s_ucp.workspace.records import parse_json, record_of

_FILE = Path("gitops/.workspace.json")
"""In the workspace, outside `.ucp`: deleting that folder must not orphan clusters."""
_ID = re.compile(r"[0-9a-f]{16,64}")
_LARGEST = 1_000_000
"""Bytes of the file."""
_MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class WorkspaceIdentity:
    """Distinguishes a workspace from all others, and from its own copies.

    id: random. root, machine: where it was used last; a folder elsewhere with the same id is a copy
    as long as the original exists. former: by topology, ids created by versions without this file.
    """

    id: str
    root: str
    machine: str
    former: Mapping[str, str]


def machine_id(root: Path, topology: str) -> str:
    """Identifies the creator of a topology's clusters; root: of the workspace. Writes nothing.

    Before the first start it is the id of versions without `settle_identity`.
    """
    identity = _identity(root)
    if identity is None:
        return _former_machine_id(root, topology)
    if topology in identity.former:
        return identity.former[topology]
    return digest(f"{identity.id}\0{topology}".encode())


def original_of(root: Path) -> str:
    """The workspace that this one was copied from, until something is started in the copy.

    Empty if it isn't such a copy. The kubeconfigs in the copy are those of the original's clusters.
    """
    identity = _read(root / _FILE)
    if identity is None or identity.root in ("", str(root)) or _identity(root) is not None:
        return ""
    return identity.root


def advice_for_copy(original: str, start: str = "ucp start") -> str:
    """What to do in a copy of a workspace. start: the command that starts it."""
    flag = command_line("--workspace", original)
    return f"add {flag} to the command; or {start}, to start the copy"


def settle_identity(root: Path) -> None:
    """Give a workspace a random identity, once; one that was moved keeps its own.

    Machine id, user and path are the same for two jobs in containers of one image, so that each
    would consider the other's kind clusters its own. Topologies that were started without an
    identity keep the id that their clusters are marked with. Raises UcpError.
    """
    file = root / _FILE
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with locks.folder_locked(file.parent):
            identity = _identity(root)
            if identity is None:
                if original_of(root):
                    # First, so that none is left in a workspace that no longer counts as a copy.
                    for each in root.glob(".ucp/*/kubeconfigs/*.yaml"):
                        each.unlink(missing_ok=True)
                former = {each: _former_machine_id(root, each) for each in _begun(root)}
                # In a copy of a workspace, the former ids belong to the original's clusters.
                identity = WorkspaceIdentity(
                    os.urandom(16).hex(), "", "", {} if file.exists() else former
                )
            hide_from_git(file.parent)
            settled = replace(identity, root=str(root), machine=_machine() or identity.machine)
            if settled != identity:
                write_private_json(file, settled)


def _identity(root: Path) -> WorkspaceIdentity | None:
    """None if there is none yet, or the folder is a copy of another workspace."""
    identity = _read(root / _FILE)
    if identity is None:
        return None
    if _machine() and identity.machine and _machine() != identity.machine:
        return None
    if identity.root != str(root):
        original_file = Path(identity.root) / _FILE
        original = _read(original_file)
        if original and original.id == identity.id and not _is_same(original_file, root / _FILE):
            return None
    return identity


def _begun(root: Path) -> list[str]:
    """Topologies that have repositories or a journal."""
    patterns = ("gitops/*/core", "gitops/*/core.git", ".ucp/*/journal.json")
    return sorted({found.parent.name for each in patterns for found in root.glob(each)})


def _former_machine_id(root: Path, topology: str) -> str:
    """The id of versions without an identity; must not change: clusters are marked with it."""
    try:
        machine = _MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        machine = os.uname().nodename
    # The folder's owner, also under sudo.
    states = root / ".ucp"
    owner = states.stat().st_uid if states.is_dir() else os.getuid()
    return digest(f"{machine}\0{owner}\0{root}\0{topology}".encode())


def _machine() -> str:
    """A digest of this machine's id; empty if it has none, as in containers and fresh images."""
    try:
        found = _MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return "" if found in ("", "uninitialized") else digest(found.encode())


def _read(path: Path) -> WorkspaceIdentity | None:
    try:
        found = record_of(WorkspaceIdentity, parse_json(read_regular_file(path, _LARGEST)))
        # They become parts of paths.
        valid = all(map(_ID.fullmatch, (found.id, *found.former.values())))
    except (OSError, ValueError):
        return None
    return found if valid else None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
