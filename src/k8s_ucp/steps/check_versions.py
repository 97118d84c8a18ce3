"""Engines of another version than the topology relies on are not started."""

from __future__ import annotations

from k8s_ucp.errors import UsageError
from k8s_ucp.steps.context import Context
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import Topology


def check_versions(context: Context) -> None:
    """Of the engines, and of Kubernetes on embedded clusters."""
    refuse_other_versions(context.topology)
    refuse_unknown_kubernetes(context.topology)


def relied_on(topology: Topology) -> dict[str, str | None]:
    """The versions that a topology names, by component."""
    return {
        "argocd": topology.spec.argocd.version,
        "crossplane": topology.spec.crossplane.version,
    }


def refuse_other_versions(topology: Topology) -> None:
    """One version of each engine is brought, and tested with the rest. Raises UsageError.

    Adopted ones have their own, which only their cluster tells.
    """
    for name, version in relied_on(topology).items():
        brought = CATALOGUE[name].version
        if (
            name not in topology.spec.core.adopt
            and version
            and version.removeprefix("v") != brought
        ):
            raise UsageError(
                f"spec.{name}.version is {version}, and this ucp brings {brought}",
                next=f"a ucp that brings {version}, or change the key once {brought} will do",
            )


def refuse_unknown_kubernetes(topology: Topology) -> None:
    """Embedded clusters run the one Kubernetes that is brought. Raises UsageError."""
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
        if provider == "embedded" and wanted and not f"{brought}.".startswith(f"{wanted}."):
            raise UsageError(
                f"{where}: Kubernetes {version} is not available for embedded clusters, "
                f"{brought} is",
                next=f"set version: {brought}, or leave it out",
            )
