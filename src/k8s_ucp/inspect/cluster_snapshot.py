"""A snapshot of a topology's clusters and components, which status and doctor evaluate.

It asks them in parallel, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp import names
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.components.adoption.adopted_argocd import of_ours
from k8s_ucp.components.component import Component
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FencePermit
from k8s_ucp.inspect.crossplane_objects import (
    composites,
    environment_resources,
    resources_of_claims,
)
from k8s_ucp.inspect.pods.problems import PodProblems, find_pod_problems
from k8s_ucp.kube import (
    APPLICATION,
    CONFIG_MAP,
    LOCAL_CLUSTER,
    SECRET,
    SYNCER,
    Kube,
    KubeError,
    Object,
)
from k8s_ucp.reconciler.registration.notes import read_notes
from k8s_ucp.topology import Topology

ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class ComponentStatus:
    """One component's health, as it reports itself."""

    name: str
    version: str
    ready: bool
    placement: str
    message: str = ""
    adopted: bool = False
    silent: bool = False
    """See Health."""


@dataclass(frozen=True)
class ClusterSnapshot:
    """State that was collected. Lists are empty if the core cluster does not respond."""

    core_ready: bool
    core_problem: str = ""
    """Which programs of the core's control plane failed although its API server is ready."""
    environments: Sequence[str] = ()
    """Environments that may be registered: those in the core repository."""
    clusters: Sequence[Object] = ()
    registrations: Sequence[Object] = ()
    applications: Sequence[Object] = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The reconciler's records of clusters that aren't LocalClusters, by source."""
    syncers: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    """Crossplane's composite resources."""
    resources: Sequence[Object] = ()
    """Cloud resources of clusters, and composed resources of claims that aren't ready."""
    answering: frozenset[str] = frozenset()
    """Names of app clusters whose API server is ready."""
    pods: PodProblems = field(default_factory=dict)
    """Pods that don't run, on app clusters with unhealthy Applications."""
    components: Sequence[ComponentStatus] = ()
    permit: FencePermit | None = None
    """State of the fence's guard; None if there is none."""
    stopped: bool = False
    """`ucp stop` ended it, or it was not started in this copy of a workspace: nothing runs."""
    original: str = ""
    """The workspace that this one was copied from; empty once something was started here."""


def collect(
    topology: Topology,
    kubeconfig: Callable[[str], Path],
    components: Callable[[], Sequence[ComponentStatus]],
    permit: FencePermit | None = None,
) -> ClusterSnapshot:
    """Ask the core cluster, app clusters and components. Those that don't respond aren't an error.

    kubeconfig: returns the file of a cluster, by name. permit: as in ClusterSnapshot.
    """
    with ThreadPoolExecutor(16, "look") as pool:
        asked = pool.submit(components)
        try:
            core = Kube.from_file(kubeconfig(topology.core_cluster))
            ready = pool.submit(core.ready, timeout=ANSWER_SECONDS)
            clusters = pool.submit(core.list_all, LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)
            environment_list = pool.submit(
                core.find, CONFIG_MAP, names.ENVIRONMENTS, names.CLUSTERS_NAMESPACE
            )
            registrations = pool.submit(
                core.list_all, SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster"
            )
            applications = pool.submit(core.list_all, APPLICATION, names.ARGOCD_NAMESPACE)
            notes = pool.submit(read_notes, core)
            syncers = pool.submit(core.list_all, SYNCER)
            claims = pool.submit(composites, core)
        except UcpError:
            return ClusterSnapshot(core_ready=False, components=asked.result(), permit=permit)
        found = _result(clusters) or []
        answering = pool.map(
            lambda name: name if _api_server_ready(kubeconfig(name)) else "",
            [each["metadata"]["name"] for each in found],
        )
        listed = _result(environment_list) or {}
        ours = of_ours(_result(applications) or [], topology.spec.core.adopt)
        claimed = _result(claims) or []
        clouds = pool.submit(environment_resources, core, ours)
        composed = pool.submit(resources_of_claims, core, claimed)
        up = frozenset(answering) - {""}
        pods = pool.submit(
            find_pod_problems, topology, ours, {name: kubeconfig(name) for name in up}
        )
        return ClusterSnapshot(
            core_ready=ready.result(),
            environments=sorted(listed.get("data") or {}),
            clusters=found,
            registrations=_result(registrations) or [],
            applications=ours,
            notes=_result(notes) or {},
            syncers=_result(syncers) or [],
            claims=claimed,
            resources=[*(_result(clouds) or []), *composed.result()],
            answering=up,
            pods=pods.result(),
            components=asked.result(),
            permit=permit,
        )


def query_components(
    components: Sequence[Component], versions: Mapping[str, str]
) -> list[ComponentStatus]:
    """Health of each component, asked in parallel. versions: of components that aren't adopted."""

    def query(each: Component) -> ComponentStatus:
        adopted = each if isinstance(each, AdoptedComponent) else None
        version = adopted.version() if adopted else versions[each.name]
        health = each.ready()
        return ComponentStatus(
            each.name,
            version,
            health.ready,
            each.placement,
            health.message,
            adopted is not None,
            health.silent,
        )

    with ThreadPoolExecutor(len(components), "health") as pool:
        return list(pool.map(query, components))


def _api_server_ready(kubeconfig: Path) -> bool:
    try:
        kube = Kube.from_file(kubeconfig)
    except UcpError:
        return False
    try:
        return kube.ready(timeout=ANSWER_SECONDS)
    finally:
        kube.close()


def _result(future: Any) -> Any:
    try:
        return future.result()
    except KubeError:
        return None
