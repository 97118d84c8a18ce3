"""The exchange of a cluster's programs for newer ones, and the way back.

The previous programs are recorded first, so that an upgrade can be rolled back if the cluster is
unhealthy with the new ones, or if it was interrupted. Every start of a cluster first repairs an
interrupted exchange (`repair`), under the cluster's lock: no control plane runs with programs of
two versions, and no etcd while its data is being restored. Imports little, because the process
monitor uses it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from k8s_ucp.clusters.embedded import definition_edits, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import end_all
from k8s_ucp.errors import UcpError
from k8s_ucp.tools.toolbox import version_of
from k8s_ucp.workspace import write_private_file

CLOSING_SECONDS = 5.0
"""For etcd to close its data before it is killed; a killed etcd loses nothing either."""
_PARTIAL, _ASIDE = "etcd-before.partial", "etcd-after"
"""Beside the copy of the data: a copy in progress, and the data that the copy replaces."""


class ExchangePhase(StrEnum):
    """Progress of an exchange; tells what an interrupted one has left."""

    BEGUN = "begun"
    """Links may be of both versions; none of the newer programs has run."""
    EXCHANGED = "exchanged"
    """The newer programs may run, but the cluster is not yet known to be healthy with them."""
    RETURNING = "returning"
    """Rollback: the cluster gets its old programs back, and its old data if it was copied."""


@dataclass(frozen=True)
class Noted:
    """The programs of a cluster before the exchange in progress, and its target version."""

    version: str
    """Kubernetes version with "v", like `newer`."""
    newer: str
    paths: Mapping[str, Path]
    """The previous programs, by the names of the links."""
    phase: ExchangePhase

    @property
    def entries(self) -> dict[str, str]:
        """Tool -> entry in the user's cache."""
        found = ((tool, self.paths.get(program)) for program, tool in programs.TOOLS.items())
        return {tool: path.parent.parent.name for tool, path in found if path}


def exchange(folder: ClusterFolder, record: Record, paths: Mapping[str, Path], newer: str) -> None:
    """End a cluster's processes, and give it these programs; its next start runs them.

    newer: their Kubernetes version, with "v". It stays open until `forget_before` completes it, or
    `undo` and a repair reverse it. Raises UcpError.
    """
    note_before(folder, record, newer)
    end_all(folder, grace=CLOSING_SECONDS)
    copy_data(folder, paths["etcd"])
    programs.link(folder, paths)
    note_version(folder, record.version, newer)
    note_phase(folder, ExchangePhase.EXCHANGED)


def undo(folder: ClusterFolder) -> bool:
    """Let the next repair give the cluster its previous programs; False if nothing is open."""
    before = noted(folder)
    if before and before.phase is ExchangePhase.EXCHANGED:
        note_phase(folder, ExchangePhase.RETURNING)
    return before is not None


def repair(folder: ClusterFolder) -> None:
    """Undo an exchange that was interrupted before any newer program ran; complete a rollback.

    An exchange that came further is left to `ucp upgrade`. Raises UcpError.
    """
    before = noted(folder)
    if before is None or before.phase is ExchangePhase.EXCHANGED:
        return
    if before.phase is ExchangePhase.RETURNING:
        end_all(folder, grace=CLOSING_SECONDS)
        put_data_back(folder)
    programs.link(folder, before.paths)
    note_version(folder, before.newer, before.version)
    forget_before(folder)


def note_version(folder: ClusterFolder, before: str, after: str) -> None:
    """Record the Kubernetes version that a cluster runs from now on; both with "v"."""
    definition_edits.set_version(folder, before, after)
    record = folder.record()
    if record and record.version != after:
        folder.write_record(Record(after, record.ports))


def note_before(folder: ClusterFolder, record: Record, newer: str) -> None:
    """Record a cluster's programs before the exchange; an earlier note is kept.

    newer: the Kubernetes version that it gets. Raises UcpError.
    """
    if folder.upgrade_note.exists():
        return
    # Left by an earlier exchange, if `forget_before` was interrupted: a rollback of this one would
    # put the old data back.
    for copy in _copies(folder):
        try:
            if copy.exists():
                shutil.rmtree(copy)
        except OSError as error:
            raise UcpError(
                f"failed to delete {copy}, which an earlier upgrade left: {error.strerror}",
                next=f"rm -r '{copy}', then run the command again",
            ) from error
    links = programs.links(folder)
    found = {name: link.readlink() for name, link in links.items() if link.is_symlink()}
    _write(folder, Noted(record.version, newer, found, ExchangePhase.BEGUN))


def note_phase(folder: ClusterFolder, phase: ExchangePhase) -> None:
    """Record the progress of the exchange."""
    if before := noted(folder):
        _write(folder, replace(before, phase=phase))


def _write(folder: ClusterFolder, note: Noted) -> None:
    links = {name: str(path) for name, path in note.paths.items()}
    content = {"version": note.version, "newer": note.newer, "links": links, "phase": note.phase}
    write_private_file(folder.upgrade_note, json.dumps(content, indent=1) + "\n")


def noted(folder: ClusterFolder) -> Noted | None:
    """The note of the exchange in progress; None if there is none.

    Raises UcpError if the note can't be read.
    """
    try:
        found = json.loads(folder.upgrade_note.read_text("utf-8"))
        return Noted(
            version=found["version"],
            newer=found["newer"],
            paths={name: Path(path) for name, path in found["links"].items()},
            phase=ExchangePhase(found["phase"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UcpError(
            f"the upgrade record of cluster {folder.name} is corrupt: {folder.upgrade_note}",
            next=f"if the cluster is healthy, delete it: rm '{folder.upgrade_note}'",
        ) from error


def copy_data(folder: ClusterFolder, etcd: Path) -> None:
    """Copy etcd's data if etcd's minor version changes: the old one may not read the new format.

    etcd: path of the new program. The processes must have ended. Raises UcpError.
    """
    before = programs.entries(folder).get("etcd", "")
    if _minor(before) == _minor(etcd.parent.parent.name) or folder.data_copy.exists():
        return
    partial = folder.data_copy.with_name(_PARTIAL)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(folder.data, partial)
        partial.rename(folder.data_copy)
    except OSError as error:
        # A full disk would prevent all other writes, the rollback among them.
        shutil.rmtree(partial, ignore_errors=True)
        raise UcpError(
            f"failed to copy the data of cluster {folder.name}: {error}",
            next=f"free disk space (df -h '{folder.root}')",
        ) from error


def put_data_back(folder: ClusterFolder) -> None:
    """Replace the data with the copy, if there is one; the processes must have ended.

    Safe to repeat after an interruption at any point: the data is never a mix of both.
    """
    if folder.data_copy.exists():
        aside = folder.data_copy.with_name(_ASIDE)
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(FileNotFoundError):
            folder.data.rename(aside)
        folder.data_copy.rename(folder.data)
        shutil.rmtree(aside, ignore_errors=True)


def forget_before(folder: ClusterFolder) -> None:
    """Delete the note and the copies once the exchange is complete; rollback ends with them."""
    # The note first: without its copy of the data, an upgrade could not be rolled back.
    folder.upgrade_note.unlink(missing_ok=True)
    for copy in _copies(folder):
        shutil.rmtree(copy, ignore_errors=True)


def _copies(folder: ClusterFolder) -> Iterator[Path]:
    """Folders with etcd's data that an exchange creates."""
    return (folder.root / name for name in (folder.data_copy.name, _PARTIAL, _ASIDE))


def _minor(entry: str) -> str:
    return version_of("etcd", entry).rpartition(".")[0]
