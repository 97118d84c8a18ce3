"""The programs of a cluster: links in its folder, through which kwokctl starts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import ProgramMissing


class ProgramPaths(Protocol):
    """Paths of installed programs; implemented by Toolbox."""

    def path(self, program: str) -> Path: ...


RUN = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""Programs that kwokctl runs, by the names in the toolbox."""
_LINKED = (*RUN, "true")
_COMPONENT_OF: Mapping[str, str] = {"kwok": "kwok-controller", "true": "kubectl"}
TOOLS: Mapping[str, str] = {"etcd": "etcd", "kube-apiserver": "kubernetes", "kwok": "kwok"}
"""Program -> the tool that contains it and the related programs."""


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
        for program, tool in TOOLS.items()
        if where[program].is_symlink()
    }


def link(folder: ClusterFolder, paths: Mapping[str, Path]) -> None:
    """Point the links to other programs; the processes must have ended."""
    for name, link in links(folder).items():
        if name in paths:
            folder.link(link, paths[name])
