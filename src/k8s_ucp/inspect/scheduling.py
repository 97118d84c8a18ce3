"""Pods that can't be scheduled, with the scheduler's message and the number of nodes needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_ucp.components.pods.component import POD, STATEFUL_SET
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.applications import is_settled, reason, shortened
from k8s_ucp.kube import Kube, Object
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.reconciler.runtime.conditions import find
from k8s_ucp.topology import Topology

NODES = "nodes"
"""The key of an environment's cluster in ucp.yaml with the number of simulated nodes."""
_WITHOUT_NODE = "spec.nodeName=,status.phase=Pending"
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


Unscheduled = Mapping[str, Sequence[UnscheduledPods]]
"""By cluster."""
NO_PODS: Unscheduled = {}


def ask_unscheduled(
    topology: Topology, applications: Iterable[Object], kubeconfigs: Mapping[str, Path]
) -> Unscheduled:
    """Unschedulable pods on the clusters of unhealthy Applications; skips unreachable clusters.

    kubeconfigs: files of clusters that may be asked, by name.
    """
    wanted = {_cluster(each) for each in applications if not is_settled(each)} & kubeconfigs.keys()
    if not wanted:
        return {}
    # Only our simulated nodes can be set; other clusters' providers determine theirs.
    environments = {
        topology.app_cluster(each.name): each.name
        for each in topology.spec.environments
        if NODES in PROVIDERS[each.cluster.provider].keys
    }
    with ThreadPoolExecutor(8, "scheduling") as pool:
        asked = {
            each: pool.submit(_ask, kubeconfigs[each], environments.get(each, ""))
            for each in sorted(wanted)
        }
        return {name: found for name, each in asked.items() if (found := each.result())}


def unscheduled(pods: Iterable[Object]) -> list[UnscheduledPods]:
    """Pods that the scheduler found no node for, grouped by owner and message."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for each in pods:
        condition = find(each, "PodScheduled")
        if condition and condition.get("reason") == "Unschedulable":
            namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
            owners = each["metadata"].get("ownerReferences") or ()
            owner = next(
                (f"{one['kind']} {one['name']}" for one in owners if one.get("controller")), ""
            )
            # The part that follows is about preemption.
            message = shortened(str(condition.get("message") or "")).partition(". ")[0].rstrip(".")
            key = (namespace, owner, "" if owner else name, message)
            found.setdefault(key, []).append(name)
    return [
        UnscheduledPods(namespace, owner, tuple(names), message)
        for (namespace, owner, _, message), names in sorted(found.items())
    ]


def pods_of(item: Object, found: Unscheduled) -> list[UnscheduledPods]:
    """Those of an Application: in its namespaces, on its cluster."""
    pods = found.get(_cluster(item), ())
    return [each for each in pods if each.namespace in _namespaces(item)] if pods else []


def nodes_needed(pods: Iterable[UnscheduledPods]) -> str:
    """How many nodes to set so that they fit; empty if more nodes would not help."""
    most = max(
        (each for each in pods if each.environment), key=lambda each: each.nodes, default=None
    )
    if most is None:
        return ""
    return (
        f"set {NODES}: {most.nodes} for the cluster of environment {most.environment} in "
        "ucp.yaml, then ucp start"
    )


def reason_and_pods(item: Object, found: Unscheduled) -> str:
    """Why an Application is unhealthy: Argo CD's reason, unschedulable pods, what to set."""
    pods = pods_of(item, found)
    words = "; ".join(filter(None, (reason(item), *map(str, pods))))
    to_do = nodes_needed(pods)
    return f"{words} ({to_do})" if to_do else words


def _ask(kubeconfig: Path, environment: str) -> list[UnscheduledPods]:
    """environment: the one whose nodes can be set."""
    try:
        kube = Kube.from_file(kubeconfig)
    except UcpError:
        return []
    try:
        found = unscheduled(kube.list_all(POD, fields=_WITHOUT_NODE))
        return [_with_nodes(kube, each, environment) for each in found]
    except UcpError:
        return []
    finally:
        kube.close()


def _with_nodes(kube: Kube, pods: UnscheduledPods, environment: str) -> UnscheduledPods:
    if not environment or not _MORE_NODES_HELP.search(pods.message):
        return pods
    kind, _, name = pods.owner.partition(" ")
    owner = kube.find(STATEFUL_SET, name, pods.namespace) if kind == STATEFUL_SET.kind else None
    return replace(
        pods, environment=environment, replicas=int(owner["spec"]["replicas"]) if owner else 0
    )


def _cluster(item: Object) -> str:
    return str(_destination(item).get("name") or "")


def _destination(item: Object) -> Mapping[str, object]:
    return dict((item.get("spec") or {}).get("destination") or {})


def _namespaces(item: Object) -> Collection[str]:
    resources = (item.get("status") or {}).get("resources") or ()
    return {str(each.get("namespace")) for each in resources} | {
        str(_destination(item).get("namespace"))
    }
