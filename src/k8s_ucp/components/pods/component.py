"""Pods placement: a component as workloads of the core cluster.

They are applied from the core repository, and managed by Argo CD afterwards. Ready means rolled
out: the latest generation is observed, all pods are updated, and all are ready. Otherwise the
message has the pod's own reason (an image that can't be pulled, a crash).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp.components.component import Check, Health, PlacementName
from k8s_ucp.components.manifests import Manifest, apply_all
from k8s_ucp.kube import DEPLOYMENT, Kind, Kube, KubeError, Object

STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
POD = Kind("v1", "Pod", "pods")
WORKLOADS = {each.kind: each for each in (DEPLOYMENT, STATEFUL_SET)}

_FIRST = ("Namespace", "ServiceAccount")


@dataclass(frozen=True)
class Workload:
    """A Deployment or StatefulSet of a component."""

    kind: str
    name: str
    namespace: str


@dataclass(frozen=True)
class PodComponent:
    """workloads: must be rolled out. beside: health of its part on this machine, if any."""

    name: str
    kube: Kube
    workloads: Sequence[Workload]
    beside: Check | None = None
    placement: PlacementName = "pods"

    def start(self, manifests: Sequence[Manifest]) -> None:
        """Apply its objects from the core repository. Can be repeated."""
        for first in (True, False):
            apply_all(self.kube, [each for each in manifests if (each.kind in _FIRST) is first])

    def rolled_out(self) -> Health:
        """Whether its pods are updated and ready."""
        with ThreadPoolExecutor(len(self.workloads)) as pool:
            waiting = [message for message in pool.map(self._rollout, self.workloads) if message]
        return Health(not waiting, "; ".join(waiting))

    def ready(self) -> Health:
        found = self.rolled_out()
        return self.beside() if found.ready and self.beside else found

    def _rollout(self, workload: Workload) -> str:
        """Why a workload is not rolled out; empty if it is."""
        try:
            item = self.kube.find(WORKLOADS[workload.kind], workload.name, workload.namespace)
            if item is None:
                return f"{workload.name} does not exist"
            missing = missing_of(item)
            if not missing:
                return ""
            pods = pods_of(self.kube, item)
        except KubeError as error:
            return f"{workload.name}: {error.message}"
        troubles = [words for pod in pods if (words := trouble_of(pod))]
        return f"{workload.name}: {missing}" + (f" ({troubles[0]})" if troubles else "")


def pods_of(kube: Kube, workload: Object) -> Sequence[Object]:
    """Pods of a workload's selector. Raises KubeError."""
    labels = workload["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return kube.list_all(POD, workload["metadata"]["namespace"], labels=selector)


def missing_of(item: Object) -> str:
    """Why a Deployment or StatefulSet is not rolled out; empty if it is."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if status.get("observedGeneration", 0) < item["metadata"].get("generation", 1):
        return "not observed by its controller yet"
    wanted = spec.get("replicas", 1)
    if item["kind"] == "StatefulSet":
        current = status.get("currentRevision") == status.get("updateRevision")
        updated = wanted if current else status.get("updatedReplicas", 0)
    else:
        updated = status.get("updatedReplicas", 0)
    if updated < wanted:
        return f"{updated} of {wanted} pods are updated"
    ready = status.get("readyReplicas", 0)
    if ready < wanted:
        return f"{ready} of {wanted} pods are ready"
    if status.get("replicas", 0) > wanted:
        return "pods of the previous version still exist"
    return ""


def trouble_of(pod: Object) -> str:
    """The reason that a pod or its node reports for not being ready; empty if there is none."""
    status = pod.get("status") or {}
    for each in [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]:
        state = each.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason") not in ("PodInitializing", "ContainerCreating"):
            return _words(each["name"], waiting)
        if ended and ended.get("exitCode"):
            return _words(each["name"], ended)
    for each in status.get("conditions") or []:
        if each["type"] == "PodScheduled" and each["status"] != "True":
            return _words("not scheduled", each)
    return ""


def _words(name: str, state: Object) -> str:
    message = " ".join(str(state.get("message") or "").split())[:200]
    reason = state.get("reason") or "waiting"
    return f"{name}: {reason}" + (f", {message}" if message else "")
