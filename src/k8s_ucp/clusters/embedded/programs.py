"""The programs of a cluster: links in its folder, by which kwokctl starts them.

They stay what they are until they are exchanged. What was linked before is noted first, so that
whoever finds the cluster unwell with the new ones, or was cut off, can go back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.errors import UcpError
from k8s_ucp.tools.toolbox import version_of
from k8s_ucp.workspace import write_private_file

RUN = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""What kwokctl runs, by the names of the toolbox."""
_LINKED = (*RUN, "true")
_COMPONENT_OF: Mapping[str, str] = {"kwok": "kwok-controller", "true": "kubectl"}
_TOOLS: Mapping[str, str] = {"etcd": "etcd", "kube-apiserver": "kubernetes", "kwok": "kwok"}
"""Program -> the tool that brings it, and those that go with it."""


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


def note_before(folder: ClusterFolder, record: Record) -> None:
    """Write down what a cluster runs before it is exchanged; an earlier note stays."""
    if folder.upgrade_note.exists():
        return
    found = {
        name: str(link.readlink()) for name, link in links(folder).items() if link.is_symlink()
    }
    text = json.dumps({"version": record.version, "links": found}, indent=1)
    write_private_file(folder.upgrade_note, text + "\n")


def noted(folder: ClusterFolder) -> tuple[str, dict[str, Path]] | None:
    """The Kubernetes version and the programs before the exchange under way; None without one.

    Raises UcpError where the note can't be read.
    """
    try:
        found = json.loads(folder.upgrade_note.read_text("utf-8"))
        return found["version"], {name: Path(path) for name, path in found["links"].items()}
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
    partial = folder.data_copy.with_name("etcd-before.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(folder.data, partial)
        partial.rename(folder.data_copy)
    except OSError as error:
        raise UcpError(
            f"failed to copy the data of cluster {folder.name}: {error}",
            next=f"free disk space (df -h '{folder.root}')",
        ) from error


def put_data_back(folder: ClusterFolder) -> None:
    """The copy takes the place of the data, where there is one; the processes have ended."""
    if folder.data_copy.exists():
        shutil.rmtree(folder.data)
        folder.data_copy.rename(folder.data)


def forget_before(folder: ClusterFolder) -> None:
    """The exchange is done with: there is no way back by the note any more."""
    folder.upgrade_note.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder.data_copy)


def _minor(entry: str) -> str:
    return version_of("etcd", entry).rpartition(".")[0]
