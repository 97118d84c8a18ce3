"""Reads the manifests of apps that are given by path: the user's folders, and those that ship."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.own import SHIPPED
from k8s_ucp.gitops.render.repositories import GENERATED, templates_folder
from k8s_ucp.topology import App, Topology

Manifests = Mapping[str, Mapping[str, bytes]]
"""{app: {path below its folder: content}}"""
MOST_BYTES = 1_000_000
"""Of one file: more is no manifest."""


def read_manifests(topology: Topology, folder: Path) -> dict[str, dict[str, bytes]]:
    """{app: {path below its folder: content}}. folder: where ucp.yaml lies.

    Raises UsageError for a folder that isn't there, leaves `folder` or holds no manifests.
    """
    return {app.name: _read(app, folder) for app in topology.spec.apps if app.form == "path"}


def _read(app: App, folder: Path) -> dict[str, bytes]:
    path = app.path or ""
    if path.startswith(SHIPPED):
        root = templates_folder() / "shipped" / path.removeprefix(SHIPPED)
        return {name: _shipped(name, file.read_bytes()) for name, file in _files(root)}
    root = folder / path
    advice = f"correct `path` of the app {app.name} in ucp.yaml"
    if not root.is_dir():
        raise UsageError(f"the app {app.name} has no manifests: {root} is no folder", next=advice)
    if not root.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"the app {app.name}: {root} leads out of {folder}", next=advice)
    files = {}
    for name, file in _files(root):
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{file} is too large for a manifest", next=advice)
        files[name] = file.read_bytes()
    if not any(name.endswith((".yaml", ".yml")) for name in files):
        raise UsageError(f"the app {app.name} has no manifests: none in {root}", next=advice)
    return files


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files below a folder; nothing hidden, no links."""
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root)
        if any(part.startswith(".") for part in name.parts) or file.is_symlink():
            continue
        if file.is_file():
            yield name.as_posix(), file


def _shipped(name: str, content: bytes) -> bytes:
    """What ships is generated like the rest, with a header."""
    return f"# {GENERATED}\n".encode() + content if name.endswith(".yaml") else content
