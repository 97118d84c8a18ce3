"""The versions that a topology runs: kept until `ucp upgrade` changes them.

A newer ucp has newer pins. `.ucp/<topology>/versions.json` records the cache entries that a
topology was started with, {tool: entry}; every command uses those while they are installed.
Components in pods have their versions in the core repository instead.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import ProgramSource
from k8s_ucp.tools.required import needed_tools
from k8s_ucp.tools.store import ToolStore
from k8s_ucp.tools.toolbox import Toolbox, version_of
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import in_pods
from k8s_ucp.workspace import (
    StateFolder,
    cache_folder,
    make_private_folder,
    write_private_file,
    write_private_json,
)
from k8s_ucp.workspace.records import parse_json

KEPT = (
    *("kubernetes", "etcd", "kwok"),
    *("crossplane", "argocd", "helm", "kustomize"),
    "argo-rollouts",
)
"""Tools whose versions a topology keeps. Not redis, which has no data, nor kind, which only creates
clusters."""
_ROOTS = "kept"
"""Folder of the cache with a file per topology, which contains the path of its versions."""


def read_kept(topology: Topology, state: StateFolder) -> dict[str, str]:
    """Tool -> entry; empty if nothing is kept."""
    return {} if in_pods(topology) else _read(state.versions)


def write_kept(topology: Topology, state: StateFolder, toolbox: Toolbox) -> None:
    """Record what a topology runs; protects it from `ucp tools prune`. Raises UcpError."""
    if in_pods(topology):
        return
    entries = {tool: toolbox.entries[tool] for tool in KEPT if tool in toolbox.entries}
    if entries != _read(state.versions):
        write_private_json(state.versions, entries)
    # Also with the same versions: the workspace may have been moved, or the cache deleted.
    root = cache_folder() / _ROOTS / state.identifier
    if not root.exists():
        make_private_folder(root.parent)
        write_private_file(root, str(state.versions))


def kept_anywhere(cache: Path) -> set[str]:
    """Entries that any of this user's topologies runs, or will run after its next start."""
    return {entry for each in states(cache) for entry in _read(each.versions).values()}


def states(cache: Path) -> list[StateFolder]:
    """State folders of this user's topologies that keep versions, in all workspaces."""
    found = []
    for root in (cache / _ROOTS).glob("[!.]*"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found.append(StateFolder(Path(root.read_text("utf-8")).parent))
    return found


def topology_installer(topology: Topology, state: StateFolder) -> Installer:
    """Finds the programs of one topology, in the versions that it keeps."""
    return Installer(
        cache_folder(),
        lambda _: None,
        source=ProgramSource(topology.spec.tools.source),
        kept=read_kept(topology, state),
    )


def kept_versions(topology: Topology, state: StateFolder) -> Mapping[str, str]:
    """Tool -> version that a start would run, regardless of newer pins."""
    store, found = ToolStore(cache_folder()), {}
    for tool in needed_tools(topology):
        entry = read_kept(topology, state).get(tool, "")
        kept = store.get(entry) if entry else None
        found[tool] = kept.version if kept else CATALOGUE[tool].version
    return found


def lost_versions(topology: Topology, state: StateFolder) -> dict[str, str]:
    """Tool -> kept version, of tools that are no longer installed."""
    store = ToolStore(cache_folder())
    kept = read_kept(topology, state).items()
    return {tool: version_of(tool, entry) for tool, entry in kept if not store.get(entry)}


def newer_pins(topology: Topology, state: StateFolder) -> dict[str, tuple[str, str]]:
    """Tool -> (kept version, pin), of tools that an upgrade would change."""
    return {
        tool: (version, CATALOGUE[tool].version)
        for tool, version in kept_versions(topology, state).items()
        if tool in KEPT and version != CATALOGUE[tool].version
    }


def _read(path: Path) -> dict[str, str]:
    try:
        found = parse_json(path.read_text("utf-8"))
        return {
            tool: str(entry)
            for tool, entry in found.items()
            # Only names in the user's own cache: a path would be executed wherever it points, and a
            # state folder may come from a repository that others wrote.
            if tool in KEPT and re.fullmatch(rf"{tool}-[\w.+-]+", str(entry))
        }
    except (OSError, ValueError, AttributeError):
        return {}
