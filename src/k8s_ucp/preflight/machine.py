"""Checks of this machine before anything is changed. Nothing here changes anything."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from k8s_ucp.cluster_provider import Placement, Reach
from k8s_ucp.clusters.local import core_request, environment_requests
from k8s_ucp.components.cloud import missing_packages
from k8s_ucp.context import StartContext, TopologyView
from k8s_ucp.credentials import exposed_files
from k8s_ucp.errors import ProgramMissing, UcpError, UsageError, command_line
from k8s_ucp.process import INOTIFY, available_memory, check_inotify, find_program
from k8s_ucp.providers import PROVIDERS, offered_cores
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.kept_versions import kept_versions, lost_versions, newer_pins, topology_installer
from k8s_ucp.tools.required import needed_tools, refuse_other_versions, relied_on
from k8s_ucp.topology import Topology
from k8s_ucp.topology.rules.combinations import find_unstartable
from k8s_ucp.workspace import advise_writable, cache_folder

FREE_MEGABYTES = 500
"""Disk space for the control planes' data and the logs of a first start."""
FREE_FILES = 2000
"""Inodes for the files of a first start."""
COMPONENTS_MEGABYTES = 900
HELPERS_MEGABYTES = 250
"""Memory for all components, or for our programs here if the core runs elsewhere."""
CLOUD_MEGABYTES = 300
"""Memory of the simulated cloud."""
OPEN_FILES = 2048
PROCESSES = 512
"""With their threads. Two environments have 214 on two cores, more on others; root has no limit."""
WATCHES, INSTANCES = 8192, 32


def check_system(context: StartContext) -> None:
    """Check for git, and for Linux if a provider requires it, otherwise Linux or macOS."""
    spec = context.topology.spec
    used = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    for name in (name for name, each in PROVIDERS.items() if name in used and each.linux_only):
        if sys.platform == "linux":
            break
        raise UcpError(
            f"the {name} engine runs on Linux only, not on {sys.platform}",
            next="run ucp on a Linux machine, or set provider: "
            f"{' or '.join(offered_cores(Placement.PODS))} for core and environments",
        )
    if sys.platform not in ("linux", "darwin"):
        raise UcpError(
            f"ucp runs on Linux and macOS only, not on {sys.platform}",
            next="run ucp on a Linux machine",
        )
    if find_program("git") is None:
        raise ProgramMissing(
            "git is not installed", next="install git (Debian: sudo apt install git)"
        )


def check_versions(context: StartContext) -> None:
    """Check versions of engines and Kubernetes: running ones are kept, whatever this ucp has."""
    topology = context.topology
    running = kept_versions(topology, context.state)
    refuse_other_versions(topology, running)
    refuse_unknown_kubernetes(topology, running)
    newer = newer_pins(topology, context.state)
    for name, wanted in relied_on(topology).items():
        kept, newest = newer.get(name, ("", ""))
        if kept and (wanted or "").removeprefix("v") == newest:
            raise UsageError(
                f"spec.{name}.version is {wanted}, but {topology.name} runs {kept}",
                next=f"ucp upgrade {name}",
            )
    for tool, version in lost_versions(topology, context.state).items():
        if version != running.get(tool):
            context.notes.append(
                f"{tool} {version}, which {topology.name} ran, is no longer installed: "
                f"it moves to {running.get(tool)}"
            )
    if newer:
        versions = ", ".join(f"{tool} {old} (now {new})" for tool, (old, new) in newer.items())
        context.notes.append(
            f"{topology.name} keeps the versions that it runs: {versions}; see `ucp upgrade --plan`"
        )


def refuse_unknown_kubernetes(topology: Topology, running: Mapping[str, str]) -> None:
    """Some providers support only the pinned Kubernetes version. Raises UsageError.

    running: versions by tool.
    """
    available = running.get("kubernetes") or CATALOGUE["kubernetes"].version
    spec = topology.spec
    clusters = [
        ("spec.core", spec.core.provider, spec.core.version),
        *(
            (f"the environment {each.name}", each.cluster.provider, each.cluster.version)
            for each in spec.environments
        ),
    ]
    for where, provider, version in clusters:
        wanted = (version or "").removeprefix("v")
        pinned = PROVIDERS[provider].pinned_version
        if pinned and wanted and not f"{available}.".startswith(f"{wanted}."):
            raise UsageError(
                f"{where}: Kubernetes {version} is not available for {provider} "
                f"clusters; available: {available}",
                next=f"set version: {available}, or remove the key",
            )


def check_combination(context: StartContext) -> None:
    """Check that this core can manage all environments."""
    if problems := list(find_unstartable(context.topology)):
        raise UcpError(
            "; ".join(each.message for each in problems),
            next="change core or environments in ucp.yaml (`ucp render` works with any)",
        )


def check_simulator(context: StartContext) -> None:
    """Check that the simulator's packages are installed."""
    simulated = context.topology.spec.clouds.simulated
    if simulated and (missing := missing_packages()):
        raise ProgramMissing(
            f"a simulated {simulated[0]} needs Python packages that are not installed: "
            f"{', '.join(missing)}",
            next="pip install 'k8s-ucp[cloud]' (in a checkout: make install-cloud)",
        )


def check_folders(context: TopologyView) -> None:
    """Check that workspace and cache are writable and have space."""
    for folder in (context.workspace.root, cache_folder()):
        existing = _existing(folder)
        if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
            raise UcpError(
                f"the folder {existing} is not writable"
                + ("" if existing == folder else f", so {folder} can't be created"),
                next=advise_writable(folder),
            )
        free = shutil.disk_usage(existing).free // 10**6
        if free < FREE_MEGABYTES:
            raise UcpError(
                f"not enough disk space for {existing}: {free} MB free, {FREE_MEGABYTES} MB needed",
                next=f"free disk space ({command_line('df', '-h', existing)})",
            )
        files = os.statvfs(existing)
        # File systems without a limit report 0 of 0.
        if files.f_files and files.f_favail < FREE_FILES:
            raise UcpError(
                f"not enough inodes for {existing}: {files.f_favail} free, {FREE_FILES} needed",
                next="delete files that are no longer needed "
                f"({command_line('df', '-i', existing)})",
            )


def check_limits(_: TopologyView) -> None:
    """Check open files, processes and inotify: too low limits cause errors that explain nothing."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard not in (resource.RLIM_INFINITY, -1) and hard < OPEN_FILES:
        raise UcpError(
            f"the limit of open files is {hard}, but {OPEN_FILES} are needed",
            next=f"ulimit -Hn {OPEN_FILES} (as root, or in /etc/security/limits.conf)",
        )
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    limited = processes not in (resource.RLIM_INFINITY, -1) and os.geteuid() != 0
    if limited and processes < PROCESSES:
        raise UcpError(
            f"the limit of processes and threads is {processes}, but {PROCESSES} are needed",
            next=f"ulimit -u {PROCESSES} (if refused: as root, or in /etc/security/limits.conf)",
        )
    check_inotify("ucp needs", watches=WATCHES, instances=INSTANCES, folder=INOTIFY)


def check_memory(context: StartContext) -> None:
    """Check the memory for what does not run yet: a control plane per cluster, and components."""
    if context.placement.is_running():
        return
    spec = context.topology.spec
    providers = [spec.core.provider, *(each.cluster.provider for each in spec.environments)]
    sizes = [size for each in providers if (size := PROVIDERS[each].megabytes)]
    here = PROVIDERS[spec.core.provider].megabytes
    clusters = len(sizes)
    needed = sum(sizes) + (COMPONENTS_MEGABYTES if here else HELPERS_MEGABYTES)
    needed += CLOUD_MEGABYTES if spec.clouds.simulated else 0
    free = available_memory() // 10**6
    if free < needed:
        raise UcpError(
            f"{clusters} clusters and the components need about {needed} MB of memory, "
            f"but only {free} MB are available",
            next="close programs, stop other topologies (ucp stop), or remove environments",
        )


def check_credentials(context: StartContext) -> None:
    """Check that only the user can read credential files."""
    folder = context.workspace.credentials
    if wide := exposed_files(folder):
        raise UcpError(
            f"other users can read {', '.join(each.name for each in wide)} in {folder}",
            next=command_line("chmod", 600, *wide),
        )


def check_socket(context: StartContext) -> None:
    """Check that no foreign process has our supervisord's socket. Raises UcpError."""
    context.placement.is_running()


def check_clusters(context: StartContext) -> None:
    """Check what clusters require: an engine, free ports, free names, contexts."""
    topology = context.topology
    core, environments = topology.spec.core.provider, environment_requests(topology)
    reach = _reach(context)
    for name, provider in context.providers.items():
        requests = environments.get(name, [])
        if clusters := len(requests) + (name == core):
            provider.check_machine(clusters)
        if name == core:
            provider.preflight(core_request(context.workspace, topology))
        for each in requests:
            provider.preflight(each, reach=reach)


def check_new_clusters(context: StartContext, known: Collection[str]) -> None:
    """Check what the clusters of added environments require, as a start does.

    known: names of the environments that there were before. Raises UcpError.
    """
    reach = _reach(context)
    others = {context.topology.app_cluster(each) for each in known}
    for name, requests in environment_requests(context.topology).items():
        for each in requests:
            if each.name not in others:
                context.providers[name].preflight(each, reach=reach)


def _reach(context: StartContext) -> Reach:
    """From where else API servers of app clusters must be reachable."""
    return Reach.PODS if context.in_pods else Reach.MACHINE


def check_tools(context: StartContext) -> None:
    """Check that missing tools can be installed: compiler and space, or reachable publishers."""
    installer = topology_installer(context.topology, context.state)
    for listener in installer.check(needed_tools(context.topology)):
        context.notes.append(
            f"the released {listener} listens on all addresses of this machine without "
            "authentication; the build with tools.source: sources does not"
        )


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent that we may access."""
    for each in (folder, *folder.parents):
        with contextlib.suppress(PermissionError):
            if each.exists():
                return each
    return folder
