"""The core repository: which files a template stands for, and with which values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from k8s_ucp.topology_parts import LOCAL_PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Topology

HOST_PLACEMENT = ("embedded",)
"""Core providers whose components are processes of the user's machine; on others they are pods."""


def places(path: str, topology: Topology) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every (path, values) that a template's path stands for; none where it isn't wanted."""
    spec = topology.spec
    if not _wanted(path, topology):
        return
    if "{core}" in path:
        yield path.replace("{core}", spec.core.provider), {}
    elif "{provider}" in path:
        used = {each.cluster.provider for each in spec.environments}
        for provider in LOCAL_PROVIDERS:
            if provider in used:
                yield path.replace("{provider}", provider), {"provider": provider}
    elif "{environment}" in path:
        for environment in spec.environments:
            if environment.cluster.provider in LOCAL_PROVIDERS:
                values = {"environment": environment, "patches": _patches(topology, environment)}
                yield path.replace("{environment}", environment.name), values
    else:
        yield path, {}


def in_pods(topology: Topology) -> bool:
    """The components run as pods of the core cluster."""
    return topology.spec.core.provider not in HOST_PLACEMENT


def _wanted(path: str, topology: Topology) -> bool:
    """Workloads are for components that run as pods."""
    return "/workloads/" not in path or in_pods(topology)


def _patches(topology: Topology, environment: Environment) -> list[tuple[str, str]]:
    """What an environment's LocalCluster has of its own: (JSON pointer, value)."""
    patches = []
    if environment.cluster.version:
        patches.append(("/spec/version", environment.cluster.version))
    if environment.access == "scoped":
        namespaces = ",".join(sorted(app.name for app in topology.spec.apps))
        patches.append(("/metadata/annotations/k8s-ucp.io~1namespaces", namespaces))
    if environment.deletion_protection:
        options = "SkipDryRunOnMissingResource=true,Prune=false,Delete=false"
        patches.append(("/metadata/annotations/argocd.argoproj.io~1sync-options", options))
    return patches
