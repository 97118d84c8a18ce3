"""Which versions of the engines a topology names, and that they are the ones brought."""

from __future__ import annotations

from k8s_ucp.errors import UsageError
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import Topology


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
                f"spec.{name}.version is {version}, but this version of ucp installs {brought}",
                next=f"use a version of ucp that installs {version}, or set the key to {brought}",
            )
