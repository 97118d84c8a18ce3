"""The programs of a cluster: links in its folder, through which kwokctl starts them.

They change only by an exchange. The previous links are recorded first, so that an upgrade can be
rolled back if the cluster is unhealthy with the new programs, or if it was interrupted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.errors import ProgramMissing, UcpError
from k8s_ucp.tools.toolbox import version_of
from k8s_ucp.workspace import write_private_file


class ProgramPaths(Protocol):
    """Paths of installed programs; implemented by Toolbox."""

    def path(self, program: str) -> Path: ...


RUN = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""Programs that kwokctl runs, by the names in the toolbox."""
_LINKED = (*RUN, "true")
_COMPONENT_OF: Mapping[str, str] = {"kwok": "kwok-controller", "true": "kubectl"}
_TOOLS: Mapping[str, str] = {"etcd": "etcd", "kube-apiserver": "kubernetes", "kwok": "kwok"}
"""Program -> the tool that contains it and the related programs."""
_PARTIAL, _ASIDE = "etcd-before.partial", "etcd-after"
"""Beside the copy of the data: a copy in progress, and the data that the copy replaces."""


def find(toolbox: ProgramPaths) -> dict[str, Path]:
    """Paths of kwokctl, its programs and `true`, by names of the links. Raises ProgramMissing."""
    paths = {each: toolbox.path(each) for each in (*RUN, "kwokctl")}
    for each, path in paths.items():
        if not path.is_file():
            raise ProgramMissing(f"{each} is missing at {path}", next="ucp tools install")
    succeed = process.find_program("true")
    if succeed is None:
        raise ProgramMissing("the program true is not in PATH", next="install coreutils")
    return {**paths, "true": succeed}


def links(folder: ClusterFolder) -> dict[str, Path]:
    """Program, by its name in the toolbox -> its link."""
    found = {each: folder.program(_COMPONENT_OF.get(each, each)) for each in _LINKED}
    return {**found, "kwokctl": folder.kwokctl}


def entries(folder: ClusterFolder) -> dict[str, str]:
    """Tool -> entry in the user's cache, for the programs that a cluster runs."""
    where = links(folder)
    return {
        tool: where[program].readlink().parent.parent.name
        for program, tool in _TOOLS.items()
        if where[program].is_symlink()
    }


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
        programs = ((tool, self.paths.get(program)) for program, tool in _TOOLS.items())
        return {tool: path.parent.parent.name for tool, path in programs if path}


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
    found = {name: link.readlink() for name, link in links(folder).items() if link.is_symlink()}
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


def exchange(folder: ClusterFolder, paths: Mapping[str, Path]) -> None:
    """Point the links to other programs; the processes must have ended."""
    for name, link in links(folder).items():
        if name in paths:
            folder.link(link, paths[name])


def copy_data(folder: ClusterFolder, etcd: Path) -> None:
    """Copy etcd's data if etcd's minor version changes: the old one may not read the new format.

    etcd: path of the new program. The processes must have ended. Raises UcpError.
    """
    before = entries(folder).get("etcd", "")
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
