"""Renders both repositories of a topology with the engines' manifests of the pinned versions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from k8s_ucp.clusters.local import REPOSITORIES
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.pods import workloads
from k8s_ucp.components.pods.reconciler_image import ReconcilerImage
from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.addresses import read_addresses, team_addresses
from k8s_ucp.gitops.render.app_manifests import Manifests
from k8s_ucp.gitops.render.repositories import Rendered, RenderInputs, render
from k8s_ucp.kube import SECRET, Object
from k8s_ucp.names import ARGOCD_NAMESPACE, MANAGED_BY, OURS, SECRET_TYPE
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.required import refuse_other_versions
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Topology, parse
from k8s_ucp.topology.placement import can_load_images, in_pods
from k8s_ucp.workspace import GitopsFolder, Workspace


def render_all(
    workspace: Workspace,
    topology: Topology,
    topology_file: bytes,
    manifests: Manifests,
    toolbox: Toolbox | None,
    *,
    vendored: Mapping[str, bytes] | None = None,
    departing: tuple[App, ...] = (),
) -> Rendered:
    """Render both repositories with the engines' manifests of the pinned versions.

    toolbox: None leaves the engines' manifests out. vendored: manifests of charts, by path in the
    core repository. departing: apps that are removed by this render. Raises UsageError.
    """
    running = toolbox.versions if toolbox else {}
    refuse_other_versions(topology, running)
    engines = engine_manifests(topology, toolbox) if toolbox else {}
    folder = workspace.gitops(topology.name)
    urls = read_addresses(topology, folder)
    inputs = RenderInputs(
        machine=workspace.machine_id(topology.name),
        core_url=urls.core,
        apps_url=urls.apps,
        topology_file=topology_file,
        manifests=manifests,
        engine=engines,
        versions={name: f"v{running.get(name, CATALOGUE[name].version)}" for name in engines},
        vendored=vendored or {},
        reconciler_image=image_name(topology) if in_pods(topology) else "",
        repositories=REPOSITORIES,
        owner=folder.root.stat().st_uid if folder.root.exists() else os.getuid(),
        team_urls=team_addresses(topology, folder),
        departing=departing,
    )
    return render(topology, inputs)


def departing_apps(topology: Topology, folder: GitopsFolder) -> tuple[App, ...]:
    """Apps of the last pushed topology that this one does not have.

    They are known for one push only: with the next one their projects are removed too.
    """
    clone = Repository(folder.core)
    branch = f"refs/remotes/origin/{topology.spec.git.branch}"
    try:
        commit = clone.resolve(branch) if folder.core.is_dir() else None
        text = clone.read(commit, "ucp.yaml").get("ucp.yaml") if commit else None
        before = parse(text.decode("utf-8"), Path("ucp.yaml")) if text else None
    except (UcpError, UnicodeDecodeError):
        # A topology that can't be read says nothing reliable.
        return ()
    names = {each.name for each in topology.spec.apps}
    return tuple(each for each in before.spec.apps if each.name not in names) if before else ()


def engine_manifests(topology: Topology, toolbox: Toolbox) -> dict[str, dict[str, bytes]]:
    """The engines' objects by file name: CRDs, configuration and, in pods placement, workloads."""
    modules = {name: toolbox.module(name) for name in (argocd.NAME, crossplane.NAME)}
    found = {
        argocd.NAME: argocd.engine_manifests(modules[argocd.NAME]),
        crossplane.NAME: crossplane.engine_manifests(modules[crossplane.NAME]),
    }
    if in_pods(topology):
        mirror = topology.spec.images.mirror
        found[argocd.NAME][workloads.FILE] = workloads.of_argocd(
            modules[argocd.NAME], mirror=mirror
        )
        found[crossplane.NAME][workloads.FILE] = workloads.of_crossplane(
            toolbox.path("helm"),
            modules[crossplane.NAME],
            CATALOGUE[crossplane.NAME].version,
            topology.spec.crossplane,
            own_function=can_load_images(topology),
            mirror=mirror,
        )
    return found


def image_name(topology: Topology) -> str:
    """The reconciler's image: the one in the topology, or the one that is built here."""
    named = topology.spec.reconciler.image
    return named or ReconcilerImage.wanted(topology.spec.images.mirror).name


def repository_secrets(
    topology: Topology, folder: GitopsFolder, *, read: Credential | None, write: Credential | None
) -> list[Object]:
    """Secrets with which Argo CD reads the user's repositories, if there is a token.

    read: a read-only credential. It is preferred, because it is what leaks if Argo CD's Secrets do.
    """
    credential = read or write
    if credential is None or topology.spec.git.provider == "local":
        return []
    urls = read_addresses(topology, folder)
    return [
        SECRET.object(
            f"repository-{name}",
            ARGOCD_NAMESPACE,
            labels={SECRET_TYPE: "repository", MANAGED_BY: OURS},
            stringData={
                "type": "git",
                "url": url,
                "username": credential.username,
                "password": credential.password,
            },
        )
        for name, url in (("core", urls.core), ("apps", urls.apps))
        if url.startswith(("http://", "https://"))
    ]
