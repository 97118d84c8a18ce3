"""Renders both repositories as an edit of ucp.yaml would leave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from k8s_ucp.cli.topology_selection import declared_file

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.render.inputs import Rendered
    from k8s_ucp.topology import Topology


def edited(call: Invocation, edit: Edit) -> tuple[str, Topology]:
    """(new text of ucp.yaml, new topology). Raises UcpError."""
    from k8s_ucp.topology import read_topology

    path = declared_file(call)
    return edit(read_topology(path), path)


def before_and_after(call: Invocation, edit: Edit) -> tuple[str, Topology, Rendered, Rendered]:
    """(new text of ucp.yaml, new topology, repositories without the edit, repositories with it).

    Raises UcpError.
    """
    text, topology = edited(call, edit)
    before = render_repositories(call, declared_file(call).read_bytes(), None)
    return text, topology, before, render_repositories(call, text.encode(), topology)


def render_repositories(call: Invocation, text: bytes, topology: Topology | None) -> Rendered:
    """Both repositories for a text of ucp.yaml. topology: as in that text; None: read the file.

    Raises UcpError.
    """
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.components.repositories import render_all
    from k8s_ucp.gitops.render.app_manifests import read_manifests
    from k8s_ucp.topology import load

    path = declared_file(call)
    topology = topology or load(path)
    manifests = read_manifests(topology, path.parent, fetcher_of(call, topology))
    return render_all(call.workspace, topology, text, manifests, None)


def differing_files(before: Rendered, after: Rendered) -> list[tuple[str, str]]:
    """(`repository: path`, "new" or "changed") of files that differ, without deleted ones."""
    found = []
    for repository in ("core", "apps"):
        old: Mapping[str, bytes] = getattr(before, repository)
        new: Mapping[str, bytes] = getattr(after, repository)
        for file in sorted(new):
            if new[file] != old.get(file):
                found.append((f"{repository}: {file}", "changed" if file in old else "new"))
    return found
