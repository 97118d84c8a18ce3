"""Installed programs by name: what the rooms above start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError


@dataclass(frozen=True)
class Toolbox:
    """Absolute paths in the user's cache. They stay valid while a newer version is installed."""

    programs: Mapping[str, Path]
    modules: Mapping[str, Path]
    """Tool -> folder with the kept part of its source: manifests, charts, scripts."""

    def path(self, program: str) -> Path:
        """The executable of a program (kube-apiserver, argocd, redis-server, ...)."""
        return self._get(self.programs, program, "program")

    def module(self, tool: str) -> Path:
        """The folder with the kept files of a tool (argocd, crossplane), laid out as upstream."""
        return self._get(self.modules, tool, "kept files of")

    def _get(self, where: Mapping[str, Path], name: str, what: str) -> Path:
        if name not in where:
            raise UcpError(f"not installed: {what} {name}", next=f"ucp tools install {_tool(name)}")
        return where[name]


def _tool(name: str) -> str:
    """The tool that brings a program."""
    from k8s_ucp.tools.catalogue import CATALOGUE

    brings = (each.name for each in CATALOGUE.values() if name in (each.name, *each.programs))
    return next(brings, name)
