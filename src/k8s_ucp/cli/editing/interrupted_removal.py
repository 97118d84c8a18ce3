"""Finds an app that is no longer in ucp.yaml, but of which something is left."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp import names
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import open_core
from k8s_ucp.cli.editing.topology_edit import find_tip
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.render.values.permissions import project_of
from k8s_ucp.kube import APPLICATION, KubeError
from k8s_ucp.topology import App, parse

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def half_removed(
    call: Invocation, topology: Topology, name: str, *, begun: bool = False
) -> App | None:
    """The app as last declared in ucp.yaml; None if it never was, or nothing is left of it.

    begun: the journal of its removal shows that something is left.

    What may be left is its project in the core repository, its files in the app repository, or
    Applications in that project.
    """
    found = find_tip(call, topology, call.workspace.gitops(topology.name).core)
    if found is None:
        return None
    clone, tip = found
    app = _last_declared(clone, tip, name) if tip else None
    if app is None or tip is None or begun:
        return app
    project = project_of(app).name
    listed = clone.listing(tip, f"projects/{project}.yaml")
    return (
        app
        if listed
        or _has_files(call, topology, name)
        or _applications(call, topology, name, project)
        else None
    )


def _has_files(call: Invocation, topology: Topology, name: str) -> bool:
    found = find_tip(call, topology, call.workspace.gitops(topology.name).apps)
    return bool(found and found[1] and found[0].listing(found[1], f"apps/{name}"))


def _last_declared(clone: Repository, tip: str, name: str) -> App | None:
    for commit in clone.history(tip, "ucp.yaml"):
        text = clone.read(commit.id, "ucp.yaml").get("ucp.yaml", b"")
        if name.encode() not in text:
            continue
        # Text of an older version, or edited by hand, may be invalid today.
        with contextlib.suppress(UcpError, UnicodeDecodeError):
            for each in parse(text.decode("utf-8"), Path("ucp.yaml")).spec.apps:
                if each.name == name:
                    return each
    return None


def _applications(call: Invocation, topology: Topology, name: str, project: str) -> list[str]:
    kube = open_core(call, topology)
    if kube is None:
        return []
    labels = f"{names.APP}={name},{names.TOPOLOGY}={topology.name}"
    with contextlib.closing(kube), contextlib.suppress(KubeError):
        applications = kube.list_all(APPLICATION, names.ARGOCD_NAMESPACE, labels=labels)
        return [e["metadata"]["name"] for e in applications if e["spec"].get("project") == project]
    return []
