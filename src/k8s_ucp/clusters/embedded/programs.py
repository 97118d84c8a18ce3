"""The programs of a cluster: links in its folder, by which kwokctl starts them.

They stay what they are until they are exchanged. What was linked before is noted first, so that
whoever finds the cluster unwell with the new ones, or was cut off, can go back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
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
    """Where installed programs lie; a Toolbox is one."""

    def path(self, program: str) -> Path: ...


RUN = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""What kwokctl runs, by the names of the toolbox."""
_LINKED = (*RUN, "true")
_COMPONENT_OF: Mapping[str, str] = {"kwok": "kwok-controller", "true": "kubectl"}
_TOOLS: Mapping[str, str] = {"etcd": "etcd", "kube-apiserver": "kubernetes", "kwok": "kwok"}
"""Program -> the tool that brings it, and those that go with it."""
_PARTIAL, _ASIDE = "etcd-before.partial", "etcd-after"
"""Beside the copy of the data: one that is being made, and data that gives way to it."""


def find(toolbox: ProgramPaths) -> dict[str, Path]:
    """What kwokctl runs, kwokctl and `true`, by the names of the links. Raises ProgramMissing."""
    paths = {each: toolbox.path(each) for each in (*RUN, "kwokctl")}
    for each, path in paths.items():
        if not path.is_file():
            raise ProgramMissing(f"{each} is missing at {path}", next="ucp tools install")
    succeed = process.find_program("true")
    if succeed is None:
        raise ProgramMissing("the program true is not in PATH", next="install coreutils")
    return {**paths, "true": succeed}


def links(folder: ClusterFolder) -> dict[str, Path]:
    """Program, by the toolbox' name -> its link."""
    found = {each: folder.program(_COMPONENT_OF.get(each, each)) for each in _LINKED}
    return {**found, "kwokctl": folder.kwokctl}


def entries(folder: ClusterFolder) -> dict[str, str]:
    """Tool -> entry in the user's cache, of what a cluster runs."""
    where = links(folder)
    return {
        tool: where[program].readlink().parent.parent.name
        for program, tool in _TOOLS.items()
        if where[program].is_symlink()
    }


class ExchangePhase(StrEnum):
    """How far an exchange has come: what a run that was cut off has left."""

    BEGUN = "begun"
    """Links may be of both; none of the newer programs has run."""
    EXCHANGED = "exchanged"
    """The newer programs may run, and nobody has said that the cluster is well with them."""
    RETURNING = "returning"
    """It gets its old programs back, and its old data where they were copied."""


@dataclass(frozen=True)
class Noted:
    """What a cluster ran before the exchange under way, and what it is to run."""

    version: str
    """Of Kubernetes, with its v, as below."""
    newer: str
    paths: Mapping[str, Path]
    """The programs of before, by the names of the links."""
    phase: ExchangePhase

    @property
    def entries(self) -> dict[str, str]:
        """Tool -> entry in the user's cache."""
        programs = ((tool, self.paths.get(program)) for program, tool in _TOOLS.items())
        return {tool: path.parent.parent.name for tool, path in programs if path}


def note_before(folder: ClusterFolder, record: Record, newer: str) -> None:
    """Write down what a cluster runs before it is exchanged; an earlier note stays.

    newer: the Kubernetes version that it gets.
    """
    if folder.upgrade_note.exists():
        return
    found = {name: link.readlink() for name, link in links(folder).items() if link.is_symlink()}
    _write(folder, Noted(record.version, newer, found, ExchangePhase.BEGUN))


def note_phase(folder: ClusterFolder, phase: ExchangePhase) -> None:
    """How far the exchange has come by now."""
    if before := noted(folder):
        _write(folder, replace(before, phase=phase))


def _write(folder: ClusterFolder, note: Noted) -> None:
    links = {name: str(path) for name, path in note.paths.items()}
    content = {"version": note.version, "newer": note.newer, "links": links, "phase": note.phase}
    write_private_file(folder.upgrade_note, json.dumps(content, indent=1) + "\n")


def noted(folder: ClusterFolder) -> Noted | None:
    """The note of the exchange under way; None without one.

    Raises UcpError where the note can't be read.
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
            f"the note of the upgrade of cluster {folder.name} is corrupt: {folder.upgrade_note}",
            next=f"if the cluster is well, delete it: rm '{folder.upgrade_note}'",
        ) from error


def exchange(folder: ClusterFolder, paths: Mapping[str, Path]) -> None:
    """Point the links at other programs; the processes have ended."""
    for name, link in links(folder).items():
        if name in paths:
            folder.link(link, paths[name])


def copy_data(folder: ClusterFolder, etcd: Path) -> None:
    """Keep etcd's data where the new one may write what the old one can't read: another minor.

    etcd: the new program. The processes have ended. Raises UcpError.
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
        # On a full disk nothing else could be written, the way back among it.
        shutil.rmtree(partial, ignore_errors=True)
        raise UcpError(
            f"failed to copy the data of cluster {folder.name}: {error}",
            next=f"free disk space (df -h '{folder.root}')",
        ) from error


def put_data_back(folder: ClusterFolder) -> None:
    """The copy takes the place of the data, where there is one; the processes have ended.

    Cut off at any moment it can be done again: the data is never half of one and half of the other.
    """
    if folder.data_copy.exists():
        aside = folder.data_copy.with_name(_ASIDE)
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(FileNotFoundError):
            folder.data.rename(aside)
        folder.data_copy.rename(folder.data)
        shutil.rmtree(aside, ignore_errors=True)


def forget_before(folder: ClusterFolder) -> None:
    """The exchange is done with: there is no way back by the note any more."""
    folder.upgrade_note.unlink(missing_ok=True)
    for name in (folder.data_copy.name, _PARTIAL, _ASIDE):
        shutil.rmtree(folder.root / name, ignore_errors=True)


def _minor(entry: str) -> str:
    return version_of("etcd", entry).rpartition(".")[0]
