"""Render both repositories from the topology, merge with what people committed, push."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.clusters.local import REPOSITORIES
from k8s_ucp.components import argocd, crossplane, workloads
from k8s_ucp.components.reconciler_image import ReconcilerImage
from k8s_ucp.git.leftovers import sweep_temporary
from k8s_ucp.gitops.check.repositories import check_rendered, refuse, transports
from k8s_ucp.gitops.check_hook import ensure_check_hook
from k8s_ucp.gitops.publish.repositories import Credentials, publish, read_addresses
from k8s_ucp.gitops.refresh import ensure_hook
from k8s_ucp.gitops.render.app_manifests import Manifests
from k8s_ucp.gitops.render.core import in_pods
from k8s_ucp.gitops.render.repositories import Facts, Rendered, render
from k8s_ucp.gitops.render.values.addon_credentials import find_missing
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.check_versions import refuse_other_versions
from k8s_ucp.steps.context import Context
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import Workspace


@dataclass(frozen=True)
class PublishRepositories:
    id: str = "publish-repositories"
    title: str = "Render and push the repositories"

    def run(self, context: Context, report: Report) -> None:
        rendered = render_all(
            context.workspace,
            context.topology,
            context.topology_file,
            context.manifests,
            context.toolbox,
        )
        sweep_temporary()
        wrong = check_rendered(
            context.toolbox.path("kustomize"), rendered, also=transports(context.topology)
        )
        refuse(wrong, "what ucp.yaml stands for can't work")
        credential = context.git_credential
        context.published = publish(
            context.topology,
            rendered,
            context.gitops,
            credentials=Credentials(credential, credential),
            settled=context.settled,
            leaving=context.leaving,
            before_push=context.before_push,
            whole=context.whole,
        )
        notes = [each.note for each in (context.published.core, context.published.apps)]
        if context.topology.spec.git.provider == "local":
            urls = read_addresses(context.topology, context.gitops)
            notes += [
                ensure_hook(
                    bare,
                    python=Path(sys.executable),
                    kubeconfig=context.state.kubeconfig(context.topology.core_cluster),
                    branch=context.topology.spec.git.branch,
                    url=url,
                )
                for bare, url in (
                    (context.gitops.core_remote, urls.core),
                    (context.gitops.apps_remote, urls.apps),
                )
            ]
            notes += [
                ensure_check_hook(
                    bare,
                    name,
                    python=Path(sys.executable),
                    kustomize=context.toolbox.path("kustomize"),
                    branch=context.topology.spec.git.branch,
                )
                for name, bare in (
                    ("core", context.gitops.core_remote),
                    ("apps", context.gitops.apps_remote),
                )
            ]
        notes += warnings(context.topology)
        report("; ".join(note for note in notes if note))


def warnings(topology: Topology) -> list[str]:
    """What a person should know about what the topology asks for."""
    found = [*find_missing(topology)]
    if topology.spec.addons.ingress == "nginx":
        words = "ingress-nginx gets no security fixes since March 2026: prefer ingress: traefik"
        found.insert(0, words)
    return found


def render_all(
    workspace: Workspace,
    topology: Topology,
    topology_file: bytes,
    manifests: Manifests,
    toolbox: Toolbox | None,
    *,
    vendored: Mapping[str, bytes] | None = None,
) -> Rendered:
    """Both repositories, with the engines' manifests of the pinned versions; without a toolbox
    those are left out. vendored: manifests of charts, by path in the core repository. Raises
    UsageError.
    """
    refuse_other_versions(topology)
    engines = engine_manifests(topology, toolbox) if toolbox else {}
    folder = workspace.gitops(topology.name)
    urls = read_addresses(topology, folder)
    facts = Facts(
        machine=workspace.machine_id(topology.name),
        core_url=urls.core,
        apps_url=urls.apps,
        topology_file=topology_file,
        manifests=manifests,
        engine=engines,
        versions={name: f"v{CATALOGUE[name].version}" for name in engines},
        vendored=vendored or {},
        reconciler_image=image_name(topology) if in_pods(topology) else "",
        repositories=REPOSITORIES,
        owner=folder.root.stat().st_uid if folder.root.exists() else os.getuid(),
    )
    return render(topology, facts)


def engine_manifests(topology: Topology, toolbox: Toolbox) -> dict[str, dict[str, bytes]]:
    """The engines' objects by file name: kinds and configuration, workloads where pods run them."""
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
            mirror=mirror,
        )
    return found


def image_name(topology: Topology) -> str:
    """The reconciler's image: the one that the topology names, or the one that is built here."""
    named = topology.spec.reconciler.image
    return named or ReconcilerImage.wanted(topology.spec.images.mirror).name
