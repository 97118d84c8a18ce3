"""Collects what the checks of `ucp doctor` examine, which is more than `ucp status` asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.record import FenceRecord
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import crossplane_objects
from k8s_ucp.inspect.doctor.certificates import Certificate, read_certificates
from k8s_ucp.inspect.teardown.abandoned import AbandonedResource
from k8s_ucp.inspect.teardown.destruction import Destruction
from k8s_ucp.kube import LEASE, NAMESPACE, Kube, Object
from k8s_ucp.topology import Topology


@dataclass(frozen=True)
class Examined:
    """Input of the checks. Everything but `topology` may be empty if nothing responded."""

    topology: Topology
    snapshot: ClusterSnapshot
    now: float
    leases: Sequence[Object] = ()
    exposed: Sequence[str] = ()
    """Credential files that other users can read."""
    admin: str = "KUBECONFIG"
    """The core's kubeconfig, for commands."""
    not_backed_up: str = ""
    """Why the backup of passwords is out of date; empty if it is up to date."""
    unfit: Sequence[tuple[str, str]] = ()
    """(incompatible setting of an adopted Argo CD, command that changes it)"""
    lacking: Sequence[str] = ()
    """Effects of settings that an adopted Argo CD lacks."""
    machine: Mapping[str, UcpError] = field(default_factory=dict)
    """Problems of this machine or a remote, by id of the finding."""
    objects: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """By cluster: objects that may be stuck or paused."""
    certificates: Sequence[Certificate] = ()
    startable: Collection[str] = ()
    """Components that this machine's supervisor can restart."""
    without_kubeconfig: Sequence[str] = ()
    """Running clusters on this machine whose kubeconfig is missing."""
    abandoned: Sequence[AbandonedResource] = ()
    """Cloud resources that were abandoned."""
    abandoned_file: str = ""
    destruction: Destruction | None = None
    """Progress of the destruction; None if there is none, or a start since."""
    fence: FenceRecord | None = None
    """The fence's current record in the core repository, if another core holds it."""
    interrupted: Sequence[tuple[str, str]] = ()
    """Interrupted runs: (description, command that continues it)"""


def collect(
    topology: Topology,
    snapshot: ClusterSnapshot,
    kube: Callable[[], Kube],
    now: float,
    *,
    app_clusters: Mapping[str, Path] | None = None,
    **more: Any,
) -> Examined:
    """Ask the clusters for more than status does. Clusters that don't respond aren't an error.

    app_clusters: kubeconfig files of those that respond.
    """
    if not snapshot.core_ready:
        return Examined(topology, snapshot, now, **more)
    core = topology.core_cluster
    with ThreadPoolExecutor(8, "doctor") as pool:
        leases = pool.submit(_leases, kube)
        asked = {
            core: pool.submit(_query, core, kube, crossplane_objects),
            **{
                name: pool.submit(_query, name, partial(Kube.from_file, path))
                for name, path in (app_clusters or {}).items()
            },
        }
        results = {name: each.result() for name, each in asked.items()}
    objects = {name: found for name, (found, _) in results.items()}
    objects[core] = [*objects[core], *snapshot.applications, *snapshot.clusters]
    certificates = [each for _, found in results.values() for each in found]
    return Examined(
        topology, snapshot, now, leases.result(), objects=objects, certificates=certificates, **more
    )


def _leases(kube: Callable[[], Kube]) -> list[Object]:
    with contextlib.suppress(UcpError):
        return kube().list_all(LEASE, names.CLUSTERS_NAMESPACE)
    return []


def _query(
    cluster: str, kube: Callable[[], Kube], more: Callable[[Kube], list[Object]] = lambda _: []
) -> tuple[list[Object], list[Certificate]]:
    """Namespaces and other objects of a cluster, and its certificates."""
    objects: list[Object] = []
    with contextlib.suppress(UcpError):
        objects += kube().list_all(NAMESPACE)
    with contextlib.suppress(UcpError):
        objects += more(kube())
    with contextlib.suppress(UcpError):
        return objects, read_certificates(cluster, kube())
    return objects, []
