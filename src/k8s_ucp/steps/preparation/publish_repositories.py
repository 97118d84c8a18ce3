"""Render both repositories from the topology, merge with what people committed, push."""

from __future__ import annotations

import sys
from pathlib import Path

from k8s_ucp.components.repositories import departing_apps, render_all
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.git.leftovers import sweep_temporary
from k8s_ucp.gitops.check.repositories import check_rendered, refuse, transports
from k8s_ucp.gitops.check_hook import ensure_check_hook
from k8s_ucp.gitops.publish.repositories import RepositoryCredentials, publish, read_addresses
from k8s_ucp.gitops.refresh import ensure_hook
from k8s_ucp.gitops.render.values.addon_credentials import find_missing
from k8s_ucp.topology import Topology

"""Warnings of the check that a start tells."""


@step("Render and push the repositories")
def publish_repositories(context: StartContext, report: Report) -> None:
    rendered = render_all(
        context.workspace,
        context.topology,
        context.topology_file,
        context.manifests,
        context.toolbox,
        departing=departing_apps(context.topology, context.gitops),
    )
    sweep_temporary()
    checked = check_rendered(
        context.toolbox.path("kustomize"),
        rendered,
        also=transports(context.topology),
        helm=context.toolbox.path("helm"),
    )
    refuse(checked, "the repositories rendered from ucp.yaml are not valid")
    credential = context.git_credential
    context.published = publish(
        context.topology,
        rendered,
        context.gitops,
        credentials=RepositoryCredentials(credential, credential),
        resolutions=context.resolutions,
        subject=context.subject,
        removed=context.removed,
        before_push=context.before_push,
        whole=context.whole,
        go_on=context.cancel.check if context.whole else lambda: None,
        merged_into_apps=context.merged_into_apps,
    )
    notes = [each.note for each in (context.published.core, context.published.apps)]
    if checked.warnings:
        count = len(checked.warnings)
        notes.append(f"{count} warning{'s' * (count > 1)}; `ucp check` lists them")
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
                helm=context.toolbox.path("helm"),
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
        words = "ingress-nginx has had no security fixes since March 2026: prefer ingress: traefik"
        found.insert(0, words)
    return found
