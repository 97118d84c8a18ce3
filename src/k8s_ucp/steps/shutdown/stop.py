"""Stops the components and clusters of this topology.

Embedded control planes keep their data. kind clusters are deleted, with their containers and their
contexts in the user's kubeconfig; they can be recreated from the repositories. A core on GKE loses
its nodes and keeps its data. Existing clusters keep running, with their apps.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters.local import remove_copies
from k8s_ucp.clusters.user_contexts import forget_contexts
from k8s_ucp.components import argocd
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.git.command import is_bare
from k8s_ucp.git.leftovers import UNFINISHED
from k8s_ucp.kube import read_kubeconfig
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import is_simulated
from k8s_ucp.workspace import GitopsFolder

SECONDS = 5.0
TEAM = "team-"
"""Prefix of the names of teams' repositories and clones."""


def _preview_components(context: StartContext) -> Iterator[PlannedChange]:
    for name in sorted(context.placement.states()):
        yield PlannedChange("delete", f"process {name}", "`ucp start` starts it again")


@step("Stop the components", preview=_preview_components)
def stop_components(context: StartContext, _: Report) -> None:
    """Stops the supervisor, too, so that nothing is restarted afterwards."""
    context.placement.stop_all()
    argocd.remove_leftovers(context.state.components)


def _preview_ends(context: StartContext) -> Iterator[PlannedChange]:
    if count := len(_running(context)):
        what = f"processes of {context.topology.name}"
        yield PlannedChange(
            "wait", what, f"{count} are running; the stop waits until they have ended"
        )


@step("Verify that all processes have ended", preview=_preview_ends)
def check_stopped(context: StartContext, _: Report) -> None:
    context.wait(
        f"termination of all processes of {context.topology.name}",
        lambda: ", ".join(_running(context)),
        seconds=SECONDS,
        pause=0.05,
        next="stop them with kill",
    )


def _running(context: StartContext) -> list[str]:
    components = (f"{each.executable} (PID {each.pid})" for each in context.placement.remains())
    return [*components, *remains(context)]


def _preview_clusters(context: StartContext) -> Iterator[PlannedChange]:
    if context.teardown.destroys:
        return  # The steps that delete them report it.
    ours: set[str] = set()
    for provider in context.providers.values():
        for name in provider.names():
            ours.add(name)
            what = f"cluster {name}"
            if provider.info.removed_by_stop:
                lost = f"all data in volumes of {name}"
                yield PlannedChange(
                    "delete", what, "`ucp start` recreates it from the repositories", lost
                )
            elif provider.info.adopts:
                yield PlannedChange("keep", what, "not created by ucp; it keeps running")
            elif _loses_data(context, provider):
                lost = f"everything on {name} that is not in a repository"
                yield PlannedChange("delete", what, "--delete-data", lost)
            elif provider.state(name).running:
                yield PlannedChange("change", what, "it will be stopped; its data is kept")
            else:
                yield PlannedChange("keep", what, "it is already stopped; its data is kept")
    for environment in context.topology.spec.environments:
        kind, name = environment.cluster.provider, context.topology.app_cluster(environment.name)
        if name not in ours and PROVIDERS[kind].managed and environment.state == "running":
            simulated = is_simulated(context.topology, kind)
            why = (
                "it is kept in the simulated cloud"
                if simulated
                else "it keeps running and is billed"
            )
            yield PlannedChange("keep", f"cluster {name}", why)


@step("Stop the control planes", preview=_preview_clusters)
def stop_clusters(context: StartContext, report: Report) -> None:
    remove_copies(context.workspace, context.topology)
    ends: dict[str, Callable[[str], None]] = {}
    removed: list[str] = []
    for provider in context.providers.values():
        clusters = provider.names()
        ends.update(dict.fromkeys(clusters, provider.stop))
        if provider.info.removed_by_stop:
            ends.update(dict.fromkeys(clusters, provider.delete))
            removed += clusters
        elif _loses_data(context, provider):
            ends.update(dict.fromkeys(clusters, partial(_stop_and_delete, provider)))
            removed += clusters
    known = [each for each in known_clusters(context) if each not in ends]
    for provider in _here(context):
        # Its folder was deleted while it was running: no data is left to keep.
        ends.update(dict.fromkeys(provider.remains(known), provider.delete))
    if not ends:
        return
    report(", ".join(ends))
    with ThreadPoolExecutor(len(ends), "stop") as pool:
        for ended in [pool.submit(end, name) for name, end in ends.items()]:
            ended.result()
    for name in removed:
        forget_access(context, name)


def _loses_data(context: StartContext, provider: ClusterProvider) -> bool:
    """--delete-data covers clusters on this machine; `ucp destroy` deletes them in other steps."""
    info = provider.info
    teardown = context.teardown
    return teardown.delete_data and not (teardown.destroys or info.adopts or info.remote)


def _stop_and_delete(provider: ClusterProvider, name: str) -> None:
    provider.stop(name)
    provider.delete(name)


def _preview_repositories(context: StartContext) -> Iterator[PlannedChange]:
    folder = context.gitops.root
    if folder.is_symlink():
        why = f"--delete-repos; the folder that it leads to is kept: {folder.resolve()}"
        yield PlannedChange("delete", f"link {folder}", why)
    elif folder.exists():
        local = context.topology.spec.git.provider == "local"
        lost = "all commits, with the apps' versions and the backup of passwords"
        why = "--delete-repos" if local else "--delete-repos; the remote ones are kept"
        lost = lost if local else "all commits in its clones that were never pushed"
        ours, others = _content(context.gitops)
        what = f"repositories in {folder}" if others else f"folder {folder}"
        yield PlannedChange("delete", what, why, f"{folder}: {lost}")
        yield from _preview_team_repositories(folder, ours)
        for each in others:
            yield PlannedChange("keep", str(each), "it was not created by ucp")


def _preview_team_repositories(folder: Path, ours: Sequence[Path]) -> Iterator[PlannedChange]:
    """Each by itself: its commits are others' work. folder: of the topology's repositories."""
    teams = [each.name.removesuffix(".git") for each in ours if each.name.startswith(TEAM)]
    for name in sorted(set(teams)):
        team, remote = name.removeprefix(TEAM), folder / f"{name}.git"
        if remote.exists():
            words = f"{remote}: all commits of the team {team}"
            yield PlannedChange("delete", f"repository {remote}", f"of the team {team}", words)
        else:
            clone = folder / name
            words = f"{clone}: its commits that were never pushed"
            why = f"of the team {team}; the remote repository is kept"
            yield PlannedChange("delete", f"clone {clone}", why, words)


@step("Delete the repositories", preview=_preview_repositories)
def delete_repositories(context: StartContext, report: Report) -> None:
    """Delete the clones and the local bare repositories; remotes elsewhere are not touched."""
    folder = context.gitops.root
    report(str(folder))
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        ours, others = _content(context.gitops)
        for each in ours:
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()
        if others:
            report(f"kept: {', '.join(map(str, others))}")
        else:
            folder.rmdir()


def _content(gitops: GitopsFolder) -> tuple[list[Path], list[Path]]:
    """(repositories and clones that ucp creates there, everything else), sorted."""
    created = {gitops.core, gitops.apps, gitops.core_remote, gitops.apps_remote}
    ours: list[Path] = []
    others: list[Path] = []
    for each in sorted(gitops.root.iterdir()):
        is_ours = each in created or each.name.startswith(UNFINISHED) or _is_of_team(each)
        (ours if is_ours else others).append(each)
    return ours, others


def _is_of_team(path: Path) -> bool:
    """Whether it is a team's repository or clone, or would be: an empty folder of that name."""
    if not (path.name.startswith(TEAM) and path.is_dir()):
        return False
    return is_bare(path) or (path / ".git").exists() or not any(path.iterdir())


def known_clusters(context: StartContext) -> list[str]:
    """Every cluster that may run here: on disk, in the topology, or in the core repository."""
    topology = context.topology
    overlays = context.gitops.core / "clusters" / "overlays"
    committed = [each.name for each in overlays.iterdir()] if overlays.is_dir() else []
    environments = {*committed, *(each.name for each in topology.spec.environments)}
    return sorted(
        {
            topology.core_cluster,
            *(topology.app_cluster(each) for each in environments),
            *(name for provider in _here(context) for name in provider.names()),
        }
    )


def _here(context: StartContext) -> list[ClusterProvider]:
    """Providers of clusters on this machine, or recorded here: no remote API is called."""
    return [provider for provider in context.providers.values() if not provider.info.remote]


def remains(context: StartContext) -> list[str]:
    """The processes and containers of the topology's clusters that are still running, in words."""
    known = known_clusters(context)
    return [words for provider in _here(context) for words in provider.remains(known).values()]


def forget_access(context: StartContext, name: str) -> None:
    """Delete the kubeconfig of a removed cluster, and its contexts in the user's own kubeconfig."""
    file = context.state.kubeconfig(name)
    if not file.exists():
        return
    try:
        config = read_kubeconfig(file)
    except UcpError:
        # Which contexts are ours can't be known, and every later stop would fail at this file.
        pass
    else:
        forget_contexts(config)
    file.unlink()
