"""Engines of another version than the topology relies on are not started."""

from __future__ import annotations

from k8s_ucp.components.versions import refuse_other_versions
from k8s_ucp.context import Context
from k8s_ucp.errors import UsageError
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import Topology


def check_versions(context: Context) -> None:
    """Of the engines, and of Kubernetes."""
    refuse_other_versions(context.topology)
    refuse_unknown_kubernetes(context.topology)


def refuse_unknown_kubernetes(topology: Topology) -> None:
    """Some clusters run the one Kubernetes that is brought. Raises UsageError."""
    brought = CATALOGUE["kubernetes"].version
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
        if pinned and wanted and not f"{brought}.".startswith(f"{wanted}."):
            raise UsageError(
                f"{where}: Kubernetes {version} is not available for {provider} "
                f"clusters; available: {brought}",
                next=f"set version: {brought}, or remove the key",
            )
