"""The control planes of EKS clusters in the simulated cloud.

The provider of embedded clusters creates them, as for LocalClusters; each is identified by region
and name of its EKS cluster.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from k8s_ucp.aws.backing import BackedResource, BackingState
from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest, ClusterState
from k8s_ucp.errors import UcpError
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.logs import Log

PATIENCE = 20.0
"""Seconds that the watcher has to restart dead processes before we start a control plane."""


class ControlPlanes:
    """Implements Backing; safe to share between threads."""

    def __init__(self, provider: ClusterProvider, log: Log, clock: Clock) -> None:
        self._provider = provider
        self._log = log
        self._clock = clock
        self._unready_since: dict[str, float] = {}
        self._lock = threading.Lock()

    def bring_up(self, resource: BackedResource) -> BackingState:
        name = plane_name(resource.region, resource.name)
        try:
            state = self._provider.state(name)
            if must_start(state, waited=self._unready_for(state)):
                request = ClusterRequest(name)
                self._provider.create(request, lambda line: self._log.info(line, cluster=name))
                state = self._provider.state(name)
                self._unready_for(state)
            return self._shown(state)
        except UcpError as error:
            raise CloudFailed(f"EKS cluster {resource.name}: {error.message}") from error

    def state(self, resource: BackedResource) -> BackingState:
        name = plane_name(resource.region, resource.name)
        try:
            return self._shown(self._provider.state(name))
        except UcpError as error:
            raise CloudFailed(f"EKS cluster {resource.name}: {error.message}") from error

    def exists(self, resource: BackedResource) -> bool:
        return plane_name(resource.region, resource.name) in self._provider.names()

    def remove(self, resource: BackedResource) -> None:
        name = plane_name(resource.region, resource.name)
        if not self.exists(resource):
            return
        try:
            self._provider.delete(name)
        except UcpError as error:
            raise CloudFailed(f"EKS cluster {resource.name}: {error.message}") from error
        with self._lock:
            self._unready_since.pop(name, None)
        self._log.info("deleted", cluster=name)

    def _shown(self, state: ClusterState) -> BackingState:
        # Its connection details stay the same while it doesn't respond.
        config = self._provider.kubeconfig(state.name) if state.version else None
        return BackingState(state.ready, state.message, eks_record(state, config))

    def _unready_for(self, state: ClusterState) -> float:
        with self._lock:
            if state.ready or not state.running:
                self._unready_since.pop(state.name, None)
                return 0.0
            return self._clock() - self._unready_since.setdefault(state.name, self._clock())


def plane_name(region: str, cluster: str) -> str:
    """Name of an EKS cluster's control plane, which no LocalCluster of a topology has."""
    digest = hashlib.sha256(f"{region}/{cluster}".encode()).hexdigest()[:8]
    plain = re.sub("[^-a-z0-9]", "-", cluster.lower())[:48]
    return f"eks-{plain}-{digest}"


def is_plane_name(name: str) -> bool:
    """Whether a name is that of such a control plane; people know only its EKS cluster."""
    return re.fullmatch("eks-[-a-z0-9]+-[0-9a-f]{8}", name) is not None


def must_start(state: ClusterState, *, waited: float) -> bool:
    """Whether to start it; the watcher gets some time to repair one that doesn't respond."""
    if not state.exists or not state.running or state.outdated:
        return True
    return not state.ready and waited > PATIENCE


def eks_record(state: ClusterState, config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The cluster in the form of the EKS API. config: None before it exists."""
    status = "ACTIVE" if state.ready else "UPDATING" if config else "CREATING"
    if config is None:
        unknown = ("endpoint", "certificateAuthority", "version")
        return {"status": status, **dict.fromkeys(unknown)}
    cluster = config["clusters"][0]["cluster"]
    return {
        "status": status,
        "endpoint": cluster["server"],
        "certificateAuthority": {"data": cluster["certificate-authority-data"]},
        # EKS leaves out the patch version.
        "version": ".".join(str(state.version).removeprefix("v").split(".")[:2]),
        "kubeconfig": json.dumps(config, sort_keys=True),
    }
