"""Renders both repositories, merges them with people's commits, and pushes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from k8s_ucp.clusters.local import remove_copies
from k8s_ucp.components.repositories import departing_apps, render_all
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import Action, PlannedChange
from k8s_ucp.git.leftovers import sweep_temporary
from k8s_ucp.gitops.check.repositories import CheckResult, check_rendered, refuse
from k8s_ucp.gitops.check_hook import already_checked, ensure_check_hook
from k8s_ucp.gitops.manifests.sources import transports
from k8s_ucp.gitops.publish.addresses import read_addresses, team_addresses
from k8s_ucp.gitops.publish.repositories import (
    Publication,
    Published,
    PublishResult,
    RepositoryCredentials,
    prepare,
    publish,
    refuse_unmergeable,
)
from k8s_ucp.gitops.publish.target import Prepared
from k8s_ucp.gitops.publish.team_repository import fill_local
from k8s_ucp.gitops.refresh import ensure_hook
from k8s_ucp.gitops.render.repositories import Rendered
from k8s_ucp.gitops.render.values.addon_credentials import find_missing
from k8s_ucp.topology import App, Topology


def render_checked(
    context: StartContext, undeclared: Sequence[App]
) -> tuple[Rendered, CheckResult]:
    """Render and check both repositories; returns the warnings, too. Raises UcpError for errors.

    undeclared: apps that ucp.yaml had at the last push.
    """
    rendered = _render(context, undeclared)
    checked = check_rendered(
        context.toolbox.path("kustomize"),
        rendered,
        also=transports(context.topology),
        helm=context.toolbox.path("helm"),
    )
    refuse(checked, "the repositories rendered from ucp.yaml are not valid")
    return rendered, checked


def _render(context: StartContext, undeclared: Sequence[App]) -> Rendered:
    departing = (*undeclared, *context.publishing.departing)
    return render_all(
        context.workspace,
        context.topology,
        context.topology_file,
        context.manifests,
        context.toolbox,
        departing=tuple({each.name: each for each in departing}.values()),
    )


def refuse_conflicts(context: StartContext) -> None:
    """Merge a render with people's commits in the scratch folder, unchecked; pushes nothing.

    Raises MergeConflict, UcpError.
    """
    rendered = _render(context, departing_apps(context.topology, context.gitops))
    prepared = prepare(_publication(context, rendered), scratch=context.publishing.scratch)
    refuse_unmergeable(*prepared, edit=context.publishing.whole)


def _preview_publish(context: StartContext) -> Iterator[PlannedChange]:
    """Writes the merged commits to clones in the scratch folder, for the steps that follow."""
    if not context.toolbox.programs:
        unknown = "to see the changes, install the pinned programs first: ucp tools install"
        yield PlannedChange("change", "core and app repository", unknown)
        return
    undeclared = departing_apps(context.topology, context.gitops)
    rendered, _ = render_checked(context, undeclared)
    prepared = prepare(_publication(context, rendered), scratch=context.publishing.scratch)
    refuse_unmergeable(*prepared, edit=context.publishing.whole)
    results = []
    for each in prepared:
        commits = [] if each.same else each.write()
        tip = commits[1] if len(commits) > 1 else each.tip or ""
        results.append(Published(each.target.name, each.target.clone, tip, len(commits) > 1))
        yield from planned_files(each)
    context.published = PublishResult(*results)
    for team in context.topology.spec.teams:
        if team.repo is None and not context.gitops.team_remote(team.name).exists():
            yield PlannedChange("create", f"repository of team {team.name}", "the team is declared")


def _publication(context: StartContext, rendered: Rendered) -> Publication:
    credential = context.git_credential
    return Publication(
        context.topology,
        rendered,
        context.gitops,
        credentials=RepositoryCredentials(credential, credential),
        resolutions=context.publishing.resolutions,
        subject=context.publishing.subject,
        removed=context.publishing.removed,
        merged_into_apps=context.publishing.merged_into_apps,
    )


def planned_files(prepared: Prepared) -> Iterator[PlannedChange]:
    """Changes that a publish would make to one repository."""
    name, changes = prepared.target.name, prepared.merged.changes
    if prepared.tip is None:
        yield PlannedChange("create", f"{name} repository", f"{len(changes)} files are created")
    elif not changes:
        yield PlannedChange("keep", f"{name} repository", "it is up to date with ucp.yaml")
    for path, content in sorted(changes.items()) if prepared.tip else ():
        if content is None:
            yield PlannedChange("delete", f"{name}: {path}", "ucp.yaml no longer declares it")
        else:
            action: Action = "change" if path in prepared.there else "create"
            yield PlannedChange(
                action, f"{name}: {path}", "its content rendered from ucp.yaml changed"
            )


@step("Render and push the repositories", preview=_preview_publish)
def publish_repositories(context: StartContext, report: Report) -> None:
    undeclared = departing_apps(context.topology, context.gitops)
    rendered, checked = render_checked(context, undeclared)
    sweep_temporary()
    remove_copies(context.workspace, context.topology)
    folder = context.gitops
    with already_checked(folder.core_remote, folder.apps_remote, rendered.core, rendered.apps):
        context.published = publish(
            _publication(context, rendered),
            before_push=context.publishing.before_push,
            whole=context.publishing.whole,
            go_on=context.cancel.check if context.publishing.whole else lambda: None,
        )
    notes: list[str | None] = [
        each.note for each in (context.published.core, context.published.apps)
    ]
    if checked.warnings:
        count = len(checked.warnings)
        notes.append(f"{count} warning{'s' * (count > 1)}; `ucp check` lists them")
    notes += _still_deployed(context.published.apps, undeclared)
    notes += _teams(context)
    if context.topology.spec.git.provider == "local":
        notes += _ensure_hooks(context)
    notes += warnings(context.topology)
    report("; ".join(note for note in notes if note))


def _still_deployed(repository: Published, undeclared: Iterable[App]) -> list[str]:
    """Notes on apps that somebody deleted from ucp.yaml, which deletes nothing."""
    return [
        f"{app.name} is no longer in ucp.yaml, but still deployed; to remove it: "
        f"ucp app remove {app.name}"
        for app in undeclared
        if repository.read(f"apps/{app.name}")
    ]


def _ensure_hooks(context: StartContext) -> list[str | None]:
    """Hooks of the local repositories: they tell Argo CD about pushes, and check them."""
    urls = read_addresses(context.topology, context.gitops)
    repositories = (
        ("core", context.gitops.core_remote, urls.core),
        ("apps", context.gitops.apps_remote, urls.apps),
    )
    notes = [_ensure_refresh_hook(context, bare, url) for _, bare, url in repositories]
    for name, bare, _ in repositories:
        notes.append(
            ensure_check_hook(
                bare,
                name,
                python=Path(sys.executable),
                kustomize=context.toolbox.path("kustomize"),
                helm=context.toolbox.path("helm"),
                branch=context.topology.spec.git.branch,
            )
        )
    return notes


def _ensure_refresh_hook(context: StartContext, bare: Path, url: str) -> str | None:
    """The hook that tells Argo CD about pushes to a local repository. Returns a note, or None."""
    return ensure_hook(
        bare,
        python=Path(sys.executable),
        kubeconfig=context.state.kubeconfig(context.topology.core_cluster),
        branch=context.topology.spec.git.branch,
        url=url,
    )


def _teams(context: StartContext) -> list[str | None]:
    """Create the teams' local repositories, with hooks that tell Argo CD about pushes."""
    topology, folder = context.topology, context.gitops
    fill_local(topology, folder)
    urls = team_addresses(topology, folder)
    return [
        _ensure_refresh_hook(context, folder.team_remote(each.name), urls[each.name])
        for each in topology.spec.teams
        if each.repo is None
    ]


def warnings(topology: Topology) -> list[str]:
    """Warnings about what the topology declares."""
    found = [*find_missing(topology)]
    if topology.spec.addons.ingress == "nginx":
        words = "ingress-nginx has had no security fixes since March 2026: prefer ingress: traefik"
        found.insert(0, words)
    return found
