"""Installed programs by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from k8s_ucp.errors import UcpError

Value = TypeVar("Value")


@dataclass(frozen=True)
class Toolbox:
    """Absolute paths in the user's cache; they stay valid if a newer version is installed."""

    programs: Mapping[str, Path]
    modules: Mapping[str, Path]
    """Tool -> folder with the kept part of its source: manifests, charts, scripts."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Tool -> name of its entry in the cache: `<tool>-<version>-<hash>`."""

    def version(self, tool: str) -> str | None:
        """Version without "v"; None if the tool isn't installed."""
        return version_of(tool, self.entries[tool]) if tool in self.entries else None

    @property
    def versions(self) -> dict[str, str]:
        """Tool -> version without "v"."""
        return {tool: version_of(tool, entry) for tool, entry in self.entries.items()}

    def with_tools(self, tools: Collection[str], other: Toolbox) -> Toolbox:
        """A toolbox with these tools from another one."""
        from k8s_ucp.tools.catalogue import CATALOGUE

        programs = {each for tool in tools for each in CATALOGUE[tool].programs}
        return replace(
            self,
            programs={**self.programs, **_only(other.programs, programs)},
            modules={**self.modules, **_only(other.modules, tools)},
            entries={**self.entries, **_only(other.entries, tools)},
        )

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


def version_of(tool: str, entry: str) -> str:
    """The version in an entry's name."""
    return entry.removeprefix(f"{tool}-").rpartition("-")[0]


def _only(where: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in where.items() if name in names}


def _tool(name: str) -> str:
    """The tool that contains a program."""
    from k8s_ucp.tools.catalogue import CATALOGUE

    brings = (each.name for each in CATALOGUE.values() if name in (each.name, *each.programs))
    return next(brings, name)
