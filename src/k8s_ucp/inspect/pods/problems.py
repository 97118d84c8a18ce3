"""What keeps the pods of unhealthy Applications from running, asked of the app clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from k8s_ucp.components.pods.component import POD
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.applications import is_settled, reason
from k8s_ucp.inspect.pods.failures import FailingPods, failing, without_pods
from k8s_ucp.inspect.pods.scheduling import (
    NODES,
    UnscheduledPods,
    nodes_needed,
    unscheduled,
    with_nodes,
)
from k8s_ucp.kube import Kind, Kube, Object
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Topology

PodProblem = UnscheduledPods | FailingPods
PodProblems = Mapping[str, Sequence[PodProblem]]
"""By cluster."""
NO_PROBLEMS: PodProblems = {}
_REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
_MOST = 8
"""Above this number of namespaces, all pods of a cluster are read in one request."""


def find_pod_problems(
    topology: Topology, applications: Iterable[Object], kubeconfigs: Mapping[str, Path]
) -> PodProblems:
    """Problems of pods on the clusters of unhealthy Applications; skips unreachable clusters.

    kubeconfigs: files of clusters that may be asked, by name.
    """
    wanted: dict[str, set[str]] = {}
    for each in applications:
        if not is_settled(each) and (cluster := _cluster(each)) in kubeconfigs:
            wanted.setdefault(cluster, set()).update(_namespaces(each))
    if not wanted:
        return {}
    # Only our simulated nodes can be set; other clusters' providers determine theirs.
    environments = {
        topology.app_cluster(environment.name): environment.name
        for environment in topology.spec.environments
        if NODES in PROVIDERS[environment.cluster.provider].keys
    }
    with ThreadPoolExecutor(8, "pods") as pool:
        asked = {
            name: pool.submit(_query, kubeconfigs[name], environments.get(name, ""), namespaces)
            for name, namespaces in sorted(wanted.items())
        }
        return {name: found for name, each in asked.items() if (found := each.result())}


def pods_of(item: Object, found: PodProblems) -> list[PodProblem]:
    """An Application's problems: on its cluster, in its namespaces or of its workloads."""
    return [
        each
        for each in found.get(_cluster(item), ())
        if (
            each.is_of(item)
            if isinstance(each, FailingPods)
            else each.namespace in _namespaces(item)
        )
    ]


def reason_and_pods(item: Object, found: PodProblems) -> str:
    """Why an Application is unhealthy: Argo CD's reason, what its pods report, what to set."""
    pods = pods_of(item, found)
    message = "; ".join(filter(None, (reason(item), *map(str, pods))))
    to_do = nodes_to_set(pods)
    return f"{message} ({to_do})" if to_do else message


def nodes_to_set(pods: Iterable[PodProblem]) -> str:
    """Nodes to set so that the unscheduled pods fit, in words; see `nodes_needed`."""
    return nodes_needed(each for each in pods if isinstance(each, UnscheduledPods))


def _query(kubeconfig: Path, environment: str, namespaces: Set[str]) -> list[PodProblem]:
    """environment: the one whose nodes can be set."""
    try:
        kube = Kube.from_file(kubeconfig)
    except UcpError:
        return []
    spaces = [*sorted(namespaces)] if len(namespaces) <= _MOST else [None]
    try:
        pods = [pod for each in spaces for pod in kube.list_all(POD, each)]
        owners = [one for each in spaces for one in kube.list_all(_REPLICA_SET, each)]
        without_node = [with_nodes(kube, each, environment) for each in unscheduled(pods)]
    except UcpError:
        return []
    finally:
        kube.close()
    return [*without_node, *failing(pods), *without_pods(owners)]


def _cluster(item: Object) -> str:
    return str(_destination(item).get("name") or "")


def _destination(item: Object) -> Mapping[str, object]:
    return dict((item.get("spec") or {}).get("destination") or {})


def _namespaces(item: Object) -> Set[str]:
    resources = (item.get("status") or {}).get("resources") or ()
    named = (*(each.get("namespace") for each in resources), _destination(item).get("namespace"))
    return {str(each) for each in named if each}
