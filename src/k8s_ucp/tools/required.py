"""The pinned programs that a topology needs, and the versions that it specifies."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.errors import UsageError
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED, PODS, ROLLOUTS
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import in_pods


def needed_tools(topology: Topology) -> tuple[str, ...]:
    """Names of the tools that a topology needs."""
    spec = topology.spec
    names = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    used = [info for name, info in PROVIDERS.items() if name in names]
    rollouts = spec.addons.argo_rollouts and any(each.simulated for each in used)
    return (
        *(PODS if in_pods(topology) else EMBEDDED),
        *(tool for each in used for tool in each.tools),
        *(ROLLOUTS if rollouts else ()),
    )


def relied_on(topology: Topology) -> dict[str, str | None]:
    """Component -> version that a topology specifies."""
    return {
        "argocd": topology.spec.argocd.version,
        "crossplane": topology.spec.crossplane.version,
    }


def refuse_other_versions(topology: Topology, running: Mapping[str, str]) -> None:
    """Only one version of each engine is shipped and tested. Raises UsageError.

    running: versions by tool; a topology keeps its versions until it is upgraded. Adopted
    components have their own versions, known only from their cluster.
    """
    for name, version in relied_on(topology).items():
        available, wanted = CATALOGUE[name].version, (version or "").removeprefix("v")
        kept = running.get(name) or available
        if wanted and name not in topology.spec.core.adopt and wanted not in (available, kept):
            raise UsageError(
                f"spec.{name}.version is {version}, but this version of ucp installs {available}",
                next=f"use a version of ucp that installs {version}, or set the key to {kept}",
            )
