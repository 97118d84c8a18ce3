"""Scales down the workloads of a core in pods that write to clouds and app clusters.

Argo CD's controller is first, because it would scale the others up again. An annotation on the
workload stores the previous replicas, so that another process can scale it up again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from k8s_ucp.components import argocd, crossplane, reconciler
from k8s_ucp.components.pods.component import STATEFUL_SET
from k8s_ucp.kube import DEPLOYMENT, Kind, Kube, NotFound, Object, annotations_of
from k8s_ucp.names import CLUSTERS_NAMESPACE, GROUP

REPLICAS = f"{GROUP}/fenced-replicas"
"""Annotation on a workload that was scaled down: its previous replicas."""
LOOK_SECONDS = 5.0
"""Interval of checks while they have to stay scaled down."""


@dataclass
class PodWriters:
    """See fence.guard.Writers. adopted: components that others run, which are left alone."""

    connect: Callable[[], Kube]
    adopted: Sequence[str] = ()
    clock: Callable[[], float] = time.monotonic
    _looked: float = field(default=float("-inf"), init=False)

    def stop(self) -> list[str]:
        """Scale the workloads down; returns those changed. Raises KubeError."""
        if self.clock() - self._looked < LOOK_SECONDS:
            return []
        self._looked = self.clock()
        return self._each(_scaled_down)

    def resume(self) -> list[str]:
        """Scale the workloads up again; returns those changed. Raises KubeError."""
        self._looked = float("-inf")
        return self._each(_scaled_up)

    def _each(self, change_of: Callable[[Object], Object | None]) -> list[str]:
        kube, names = self.connect(), []
        try:
            for kind, item in self._workloads(kube):
                metadata = item["metadata"]
                if (change := change_of(item)) is not None:
                    with suppress(NotFound):
                        kube.patch(kind, metadata["name"], metadata["namespace"], change)
                        names.append(f"{kind.kind} {metadata['name']}")
        finally:
            kube.close()
        return names

    def _workloads(self, kube: Kube) -> list[tuple[Kind, Object]]:
        found: list[tuple[Kind, Object]] = []
        if argocd.NAME not in self.adopted:
            item = kube.find(STATEFUL_SET, argocd.CONTROLLER, argocd.NAMESPACE)
            found += [(STATEFUL_SET, item)] if item else []
        if crossplane.NAME not in self.adopted:
            # Crossplane's providers are Deployments in the same namespace.
            found += [
                (DEPLOYMENT, each) for each in kube.list_all(DEPLOYMENT, crossplane.NAMESPACE)
            ]
        item = kube.find(DEPLOYMENT, reconciler.NAME, CLUSTERS_NAMESPACE)
        return found + ([(DEPLOYMENT, item)] if item else [])


def _scaled_down(item: Object) -> Object | None:
    replicas = (item.get("spec") or {}).get("replicas", 1)
    if not replicas:
        return None
    return {"metadata": {"annotations": {REPLICAS: str(replicas)}}, "spec": {"replicas": 0}}


def _scaled_up(item: Object) -> Object | None:
    before = annotations_of(item).get(REPLICAS)
    if before is None:
        return None
    return {"metadata": {"annotations": {REPLICAS: None}}, "spec": {"replicas": int(before)}}
