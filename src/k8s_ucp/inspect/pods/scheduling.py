"""Pods that can't be scheduled, with the scheduler's message and the number of nodes needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from k8s_ucp.components.pods.component import STATEFUL_SET
from k8s_ucp.inspect.applications import shortened
from k8s_ucp.inspect.pods.failures import owner_of
from k8s_ucp.kube import Kube, Object, mapping_in
from k8s_ucp.reconciler.runtime.conditions import find

NODES = "nodes"
"""The key of an environment's cluster in ucp.yaml with the number of simulated nodes."""
_AVAILABLE = re.compile(r"0/(\d+) nodes are available")
_MORE_NODES_HELP = re.compile(
    r"anti-affinity|topology spread|free ports|too many pods|no nodes available"
    r"|insufficient (cpu|memory)",
    re.I,
)


@dataclass(frozen=True)
class UnscheduledPods:
    """Unschedulable pods of one owner in one namespace, with the same reason."""

    namespace: str
    owner: str
    """Kind and name of their controller; empty for a bare pod."""
    pods: tuple[str, ...]
    message: str
    """The scheduler's message."""
    environment: str = ""
    """The environment whose number of nodes in ucp.yaml would help."""
    replicas: int = 0
    """Replicas of an owner that creates its pods one after another, so more will follow."""

    @property
    def nodes(self) -> int:
        """The number of nodes needed, if each of these pods needs another one.

        The rollout of a Deployment needs one more, since old pods stay until new ones are ready.
        """
        available = _AVAILABLE.search(self.message)
        more = self.owner.startswith("ReplicaSet ")
        return max((int(available[1]) if available else 0) + len(self.pods) + more, self.replicas)

    def __str__(self) -> str:
        many = len(self.pods) > 1
        what = f"Pod {self.namespace}/{self.pods[0]}"
        if self.owner:
            kind, _, name = self.owner.partition(" ")
            count = f"{len(self.pods)} pods" if many else "a pod"
            what = f"{count} of {kind} {self.namespace}/{name}"
        return f"{what} {'are' if many else 'is'} not scheduled: {self.message}"


def unscheduled(pods: Iterable[Object]) -> list[UnscheduledPods]:
    """Pods that the scheduler found no node for, grouped by owner and message."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for each in pods:
        condition = find(each, "PodScheduled")
        if condition and condition.get("reason") == "Unschedulable":
            namespace, name = str(each["metadata"].get("namespace")), each["metadata"]["name"]
            owner = owner_of(each)
            # The part that follows is about preemption.
            message = shortened(str(condition.get("message") or "")).partition(". ")[0].rstrip(".")
            key = (namespace, owner, "" if owner else name, message)
            found.setdefault(key, []).append(name)
    return [
        UnscheduledPods(namespace, owner, tuple(names), message)
        for (namespace, owner, _, message), names in sorted(found.items())
    ]


def nodes_needed(pods: Iterable[UnscheduledPods]) -> str:
    """Nodes to set so that these pods fit, in words; empty if more nodes would not help."""
    most = max(
        (each for each in pods if each.environment), key=lambda each: each.nodes, default=None
    )
    if most is None:
        return ""
    return (
        f"set {NODES}: {most.nodes} for the cluster of environment {most.environment} in "
        "ucp.yaml, then ucp start"
    )


def with_nodes(kube: Kube, pods: UnscheduledPods, environment: str) -> UnscheduledPods:
    """Add the environment whose number of nodes would help, if it would.

    environment: the one whose nodes can be set.
    """
    if not environment or not _MORE_NODES_HELP.search(pods.message):
        return pods
    kind, _, name = pods.owner.partition(" ")
    owner = kube.find(STATEFUL_SET, name, pods.namespace) if kind == STATEFUL_SET.kind else None
    replicas = mapping_in(owner or {}, "spec").get("replicas")
    return replace(
        pods, environment=environment, replicas=replicas if isinstance(replicas, int) else 0
    )
