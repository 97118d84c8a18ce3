"""What is deleted with an environment, an app or a team: the lines of `remove --plan`.

From the current objects on the core cluster. The modules of the removals define what they delete,
and in which order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from k8s_ucp import names
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import open_core
from k8s_ucp.cli.editing.kind_deletion import preview_kinds
from k8s_ucp.cli.editing.namespace_deletion import preview_namespaces
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.kube import APPLICATION, Object, labels_of
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import is_simulated, runs_in_cluster

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Environment, Topology

LATER = "at the next start: the core cluster is not running"


def preview_environment(
    call: Invocation, topology: Topology, environment: Environment
) -> Iterator[PlannedChange]:
    """What is deleted with an environment. topology: with it."""
    name, cluster = environment.name, topology.app_cluster(environment.name)
    provider = environment.cluster.provider
    core = open_core(call, topology)
    if core is None:
        yield PlannedChange("wait", f"drain of {cluster}", LATER)
    else:
        with contextlib.closing(core):
            applications = core.list_all(APPLICATION, names.ARGOCD_NAMESPACE)
        applications_of_cluster = [each for each in applications if cluster_of(each) == cluster]
        yield from preview_applications(topology, applications_of_cluster)
        yield PlannedChange("wait", f"drain of {cluster}", "its Applications are deleted first")
    for database in topology.spec.databases:
        if name not in (database.environments or [name]) or runs_in_cluster(database, environment):
            continue
        if database.provider != "local":
            why = "no commit deletes a database: it stays in its cloud until a person deletes it"
            yield PlannedChange("keep", f"database {database.name} of {name}", why)
    if PROVIDERS[provider].adopts:
        yield PlannedChange(
            "keep", f"cluster {cluster}", "not created by ucp; ucp's objects on it are deleted"
        )
        return
    lost = f"everything on {cluster} that is not in a repository"
    if not is_simulated(topology, provider):
        lost += ", with all data in its volumes"
    yield PlannedChange("delete", f"cluster {cluster}", f"it belongs to {name} ({provider})", lost)


def preview_app(
    call: Invocation, topology: Topology, name: str, declared: App | None
) -> Iterator[PlannedChange]:
    """What is deleted with an app. topology: with it. declared: its item in ucp.yaml."""
    core = open_core(call, topology)
    if core is None:
        yield PlannedChange("delete", f"Applications of {name}", LATER)
        return
    with contextlib.closing(core):
        applications = core.list_all(APPLICATION, names.ARGOCD_NAMESPACE)
    labels = {names.APP: name, names.TOPOLOGY: topology.name}
    own = [each for each in applications if labels.items() <= labels_of(each).items()]
    yield from preview_applications(topology, own)
    if declared is not None:
        yield PlannedChange("delete", f"project of {name}", "its Applications are deleted first")
        yield from preview_kinds(call, topology, name, applications)
        without = [each for each in topology.spec.apps if each.name != name]
        spec = topology.spec.model_copy(update={"apps": tuple(without)})
        rest = topology.model_copy(update={"spec": spec})
        yield from preview_namespaces(call, rest, declared)


def preview_applications(
    topology: Topology, applications: Iterable[Object]
) -> Iterator[PlannedChange]:
    """Applications with everything they deployed, including data in volumes that they declare."""
    simulated = {
        topology.app_cluster(each.name)
        for each in topology.spec.environments
        if is_simulated(topology, each.cluster.provider)
    }
    for each in applications:
        cluster = cluster_of(each)
        volumes = [
            part["name"]
            for part in (each.get("status") or {}).get("resources") or []
            if part.get("kind") == "PersistentVolumeClaim" and cluster not in simulated
        ]
        lost = f"all data in the volumes {', '.join(volumes)} on {cluster}" if volumes else ""
        what = f"Application {each['metadata']['name']}"
        yield PlannedChange("delete", what, f"with everything that it deployed to {cluster}", lost)


def cluster_of(application: Object) -> str:
    """Name of the cluster that an Application deploys to; "" if it is given by address."""
    return str(application["spec"].get("destination", {}).get("name", ""))
