"""Upgrades the programs of a cluster, and rolls an upgrade back.

The previous programs are recorded first, so that an upgrade can be rolled back if the cluster is
unhealthy with the new ones, or if it was interrupted. Every start of a cluster first repairs an
interrupted upgrade (`repair`), under the cluster's lock: no control plane runs with programs of
two versions, and no etcd while its data is being restored. Imports little, because the process
monitor uses it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from k8s_ucp.clusters.embedded import definition_edits, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import end_all
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.tools.toolbox import version_of
from k8s_ucp.workspace import rename_synced, write_private_json
from k8s_ucp.workspace.records import parse_json

CLOSING_SECONDS = 5.0
"""For etcd to close its data before it is killed; a killed etcd loses nothing either."""
_PARTIAL, _ASIDE = "etcd-before.partial", "etcd-after"
"""Beside the copy of the data: a copy in progress, and the data that the copy replaces."""


class UpgradePhase(StrEnum):
    """Progress of an upgrade; tells what an interrupted one has left."""

    BEGUN = "begun"
    """Links may be of both versions; none of the newer programs has run."""
    REPLACED = "exchanged"
    """The newer programs may run, but the cluster is not yet known to be healthy with them."""
    ROLLING_BACK = "returning"
    """Rollback: the cluster gets its old programs back, and its old data if it was copied."""


@dataclass(frozen=True)
class UpgradeRecord:
    """The programs of a cluster before the upgrade in progress, and its target version."""

    version: str
    """Kubernetes version with "v", like `newer`."""
    newer: str
    paths: Mapping[str, Path]
    """The previous programs, by the names of the links."""
    phase: UpgradePhase

    @property
    def entries(self) -> dict[str, str]:
        """Tool -> entry in the user's cache."""
        found = ((tool, self.paths.get(program)) for program, tool in programs.TOOLS.items())
        return {tool: path.parent.parent.name for tool, path in found if path}


def replace_programs(
    folder: ClusterFolder, record: Record, paths: Mapping[str, Path], newer: str
) -> None:
    """End a cluster's processes, and give it these programs; its next start runs them.

    newer: their Kubernetes version, with "v". The upgrade is in progress until `delete_record`
    completes it, or `request_rollback` and `repair` reverse it. Raises UcpError.
    """
    begin_record(folder, record, newer)
    end_all(folder, grace=CLOSING_SECONDS)
    copy_data(folder, paths["etcd"])
    programs.link(folder, paths)
    set_version(folder, record.version, newer)
    set_phase(folder, UpgradePhase.REPLACED)


def request_rollback(folder: ClusterFolder) -> bool:
    """Let the next repair give the cluster its previous programs; False if there is no upgrade."""
    before = read_record(folder)
    if before and before.phase is UpgradePhase.REPLACED:
        set_phase(folder, UpgradePhase.ROLLING_BACK)
    return before is not None


def repair(folder: ClusterFolder) -> None:
    """Revert an upgrade that was interrupted before any newer program ran; complete a rollback.

    An upgrade that came further is left to `ucp upgrade`. Raises UcpError.
    """
    before = read_record(folder)
    if before is None or before.phase is UpgradePhase.REPLACED:
        return
    if before.phase is UpgradePhase.ROLLING_BACK:
        end_all(folder, grace=CLOSING_SECONDS)
        restore_data(folder)
    programs.link(folder, before.paths)
    set_version(folder, before.newer, before.version)
    delete_record(folder)


def set_version(folder: ClusterFolder, before: str, after: str) -> None:
    """Record the Kubernetes version that a cluster runs from now on; both with "v"."""
    definition_edits.set_version(folder, before, after)
    record = folder.record()
    if record and record.version != after:
        folder.write_record(Record(after, record.ports))


def begin_record(folder: ClusterFolder, record: Record, newer: str) -> None:
    """Record a cluster's programs before the upgrade; an earlier record is kept.

    newer: the Kubernetes version that it gets. Raises UcpError.
    """
    if folder.upgrade_record.exists():
        return
    # Left by an earlier upgrade, if `delete_record` was interrupted: a rollback of this one would
    # put the old data back.
    for copy in _copies(folder):
        try:
            if copy.exists():
                shutil.rmtree(copy)
        except OSError as error:
            raise UcpError(
                f"failed to delete {copy}, which an earlier upgrade left: {error.strerror}",
                next=f"{command_line('rm', '-r', copy)}, then run the command again",
            ) from error
    links = programs.links(folder)
    found = {name: link.readlink() for name, link in links.items() if link.is_symlink()}
    _write(folder, UpgradeRecord(record.version, newer, found, UpgradePhase.BEGUN))


def set_phase(folder: ClusterFolder, phase: UpgradePhase) -> None:
    """Record the progress of the upgrade."""
    if before := read_record(folder):
        _write(folder, replace(before, phase=phase))


def _write(folder: ClusterFolder, record: UpgradeRecord) -> None:
    links = {name: str(path) for name, path in record.paths.items()}
    content = {
        "version": record.version,
        "newer": record.newer,
        "links": links,
        "phase": record.phase,
    }
    write_private_json(folder.upgrade_record, content)


def read_record(folder: ClusterFolder) -> UpgradeRecord | None:
    """The record of the upgrade in progress; None if there is none.

    Raises UcpError if it can't be read.
    """
    try:
        found = parse_json(folder.upgrade_record.read_text("utf-8"))
        return UpgradeRecord(
            version=found["version"],
            newer=found["newer"],
            paths={name: Path(path) for name, path in found["links"].items()},
            phase=UpgradePhase(found["phase"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UcpError(
            f"the upgrade record of cluster {folder.name} is corrupt: {folder.upgrade_record}",
            next="if the cluster is healthy, delete it: "
            + command_line("rm", folder.upgrade_record),
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
        # The newer etcd changes the data as soon as it runs: only the copy could bring it back.
        rename_synced(partial, folder.data_copy)
    except OSError as error:
        # A full disk would prevent all other writes, the rollback among them.
        shutil.rmtree(partial, ignore_errors=True)
        raise UcpError(
            f"failed to copy the data of cluster {folder.name}: {error}",
            next=f"free disk space ({command_line('df', '-h', folder.root)})",
        ) from error


def restore_data(folder: ClusterFolder) -> None:
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


def delete_record(folder: ClusterFolder) -> None:
    """Delete the record and the copies: the upgrade is complete, and can't be rolled back."""
    # The record first: without its copy of the data, an upgrade could not be rolled back.
    folder.upgrade_record.unlink(missing_ok=True)
    for copy in _copies(folder):
        shutil.rmtree(copy, ignore_errors=True)


def _copies(folder: ClusterFolder) -> Iterator[Path]:
    """Folders with etcd's data that an upgrade creates."""
    return (folder.root / name for name in (folder.data_copy.name, _PARTIAL, _ASIDE))


def _minor(entry: str) -> str:
    return version_of("etcd", entry).rpartition(".")[0]
