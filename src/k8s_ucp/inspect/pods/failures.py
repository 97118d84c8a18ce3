"""Containers that fail or can't start, and ReplicaSets that can't create their pods. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.inspect.applications import shortened
from k8s_ucp.kube import Object, mapping_in, mappings_in
from k8s_ucp.reconciler.runtime.conditions import find

_STARTING = ("", "ContainerCreating", "PodInitializing")
_REFUSED = re.compile(r'^pods "[^"]*" is forbidden: ')
# Kubernetes repeats the pod's name and UID in it, but not why the container ended.
_BACK_OFF = re.compile(r"^back-off \S+ restarting failed container")


@dataclass(frozen=True)
class FailingPods:
    """Pods of one controller that fail for the same reason, or that it can't create."""

    namespace: str
    owner: str
    """Kind and name of their controller, or of a bare pod."""
    reason: str
    pods: int = 1
    """0: the API server refuses them."""

    def is_of(self, item: Object) -> bool:
        """Whether an Application's unhealthy objects include the workload.

        A Deployment's ReplicaSets and a CronJob's Jobs have its name and a suffix.
        """
        kind, _, name = self.owner.partition(" ")
        workloads = {name}
        if kind in ("ReplicaSet", "Job"):
            workloads.add(name.rpartition("-")[0])
        return any(
            each.get("name") in workloads and each.get("namespace") == self.namespace
            for each in mappings_in(item, "status", "resources")
            if mapping_in(each, "health").get("status", "Healthy") != "Healthy"
        )

    def __str__(self) -> str:
        kind, _, name = self.owner.partition(" ")
        what = f"{kind} {self.namespace}/{name}"
        if not self.pods:
            return f"{what} can't create its pods: {self.reason}"
        if kind != "Pod":
            what = f"{f'{self.pods} pods' if self.pods > 1 else 'a pod'} of {what}"
        return f"{what}: {self.reason}"


def owner_of(pod: Object) -> str:
    """Kind and name of its controller; empty for a bare pod."""
    owners = mappings_in(pod, "metadata", "ownerReferences")
    found = (f"{one.get('kind')} {one.get('name')}" for one in owners if one.get("controller"))
    return next(found, "")


def failing(pods: Iterable[Object]) -> list[FailingPods]:
    """Pods with a container that can't start or keeps ending, grouped by owner and reason.

    Of a Job, also those that failed: for others, new pods have replaced them.
    """
    found: dict[tuple[str, str, str], int] = {}
    for each in pods:
        metadata = each["metadata"]
        owner = owner_of(each) or f"Pod {metadata['name']}"
        reason = next(_reasons(each, ended=owner.startswith("Job ")), "")
        if reason and not metadata.get("deletionTimestamp"):
            key = (str(metadata.get("namespace")), owner, reason)
            found[key] = found.get(key, 0) + 1
    return [FailingPods(*key, pods=count) for key, count in sorted(found.items())]


def without_pods(replica_sets: Iterable[Object]) -> list[FailingPods]:
    """ReplicaSets whose pods the API server refuses, such as because of a quota."""
    found = []
    for each in replica_sets:
        condition = find(each, "ReplicaFailure")
        if condition and condition.get("status") == "True":
            namespace, name = str(each["metadata"].get("namespace")), each["metadata"]["name"]
            why = _REFUSED.sub("", shortened(str(condition.get("message") or "")))
            found.append(FailingPods(namespace, f"ReplicaSet {name}", why, pods=0))
    return found


def _reasons(pod: Object, *, ended: bool) -> Iterator[str]:
    """ended: a container that ended with an error counts, too."""
    for each in (
        *mappings_in(pod, "status", "initContainerStatuses"),
        *mappings_in(pod, "status", "containerStatuses"),
    ):
        waiting = mapping_in(each, "state", "waiting")
        over = mapping_in(each, "state", "terminated")
        if (reason := str(waiting.get("reason") or "")) not in _STARTING:
            details = _details(each, waiting)
            yield f"container {each.get('name')}: {reason}{details and f' ({details})'}"
        elif ended and mapping_in(pod, "status").get("phase") == "Failed" and over.get("exitCode"):
            yield f"container {each.get('name')}: {_end(over)}"


def _details(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
    last = mapping_in(container, "lastState", "terminated")
    message = shortened(str(waiting.get("message") or ""))
    shown = "" if _BACK_OFF.search(message) else message
    return "; ".join(filter(None, (_end(last) if last else "", shown)))


def _end(terminated: Mapping[str, Any]) -> str:
    reason, code = terminated.get("reason"), terminated.get("exitCode")
    return f"{reason}, exit code {code}" if reason else f"exit code {code}"
