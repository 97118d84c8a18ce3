"""A topology's objects on its core cluster: clusters, their parts, claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from k8s_ucp import names
from k8s_ucp.components import crossplane
from k8s_ucp.components.ownership.tracking import tracker
from k8s_ucp.context import StartContext
from k8s_ucp.inspect.cluster_deletion import (
    CLUSTERS,
    cluster_resources,
    is_of_cluster_service,
)
from k8s_ucp.inspect.crossplane_objects import composites
from k8s_ucp.kube import CRD, LOCAL_CLUSTER, Object, labels_of
from k8s_ucp.managed.ownership import is_declared_by_us
from k8s_ucp.names import CLUSTERS_NAMESPACE, ENVIRONMENT, GROUP, TOPOLOGY
from k8s_ucp.preflight.orphans import managed_kinds
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import runs_in_cluster

CLOUD = f"{GROUP}/cloud"
"""Label with which a claim selects its Composition."""


@dataclass(frozen=True)
class OwnedObjects:
    """The current objects. Every property raises KubeError."""

    context: StartContext

    @cached_property
    def local_clusters(self) -> list[Object]:
        """LocalClusters with the topology's label."""
        label = f"{TOPOLOGY}={self.context.topology.name}"
        return self.context.kube.list_all(LOCAL_CLUSTER, CLUSTERS_NAMESPACE, labels=label)

    @cached_property
    def claims(self) -> list[Object]:
        """Databases of ucp.yaml, by their label, and claims from the teams' repositories."""
        topology = self.context.topology
        teams = {each.namespace for each in topology.spec.teams}
        found = []
        for each in composites(self.context.kube):
            space = each["metadata"].get("namespace")
            claimed = tracker(each) == f"{space}.claims"
            if labels_of(each).get(TOPOLOGY) == topology.name or (space in teams and claimed):
                found.append(each)
        return found

    @cached_property
    def cloud_clusters(self) -> list[Object]:
        """Clusters in clouds: resources of the provider's cluster service."""
        return [each for each in self._resources if is_of_cluster_service(each)]

    @cached_property
    def networks(self) -> list[Object]:
        """Networks and roles of these clusters, except `kept_networks`."""
        kept = {each["metadata"]["uid"] for each in self.kept_networks}
        return [each for each in self._beside_clusters if each["metadata"]["uid"] not in kept]

    @cached_property
    def kept_networks(self) -> list[Object]:
        """Networks and roles that kept claims may use."""
        kept = () if self.context.teardown.delete_data else self.claims
        used = set(map(_environment_and_cloud, kept))
        return [each for each in self._beside_clusters if _is_used(each, used)]

    @cached_property
    def _beside_clusters(self) -> list[Object]:
        return [each for each in self._resources if not is_of_cluster_service(each)]

    @cached_property
    def managed(self) -> list[Object]:
        """All managed resources on the core, except those of others."""
        others_too = self.context.adopts(crossplane.NAME)
        kube = self.context.kube
        with ThreadPoolExecutor(8, "managed") as pool:
            listed = pool.map(kube.list_all, managed_kinds(kube.list_all(CRD)))
            return [
                each
                for some in listed
                for each in some
                if not others_too or is_declared_by_us(each)
            ]

    @cached_property
    def _resources(self) -> list[Object]:
        """By Argo CD's list, and by tracking id, since Argo CD may be unable to compare now."""
        listed = cluster_resources(self.context.kube, self.context.applications())
        known = {each["metadata"]["uid"] for each in listed}
        return [
            *listed,
            *(
                each
                for each in self.managed
                if _is_of_cluster(each) and each["metadata"]["uid"] not in known
            ),
        ]

    def to_delete(self) -> list[Object]:
        """Managed resources that a teardown deletes, including parts of claims."""
        uids = {each["metadata"]["uid"] for each in (*self.cloud_clusters, *self.networks)}
        claimed = {
            each["metadata"]["uid"] for each in self.claims if self.context.teardown.delete_data
        }
        return [
            each
            for each in self.managed
            if each["metadata"]["uid"] in uids or claimed & set(_owners(each))
        ]


def planned_objects(context: StartContext) -> OwnedObjects:
    """The objects for the lines of --plan; read once, since a plan changes nothing."""
    found: OwnedObjects = vars(context).setdefault("owned_objects", OwnedObjects(context))
    return found


def data_in_clusters(context: StartContext) -> list[str]:
    """Databases whose data is deleted with the cluster that they run in."""
    topology = context.topology
    return [
        f"{each.name} of {environment.name}"
        for each in topology.spec.databases
        for environment in topology.spec.environments
        if environment.name in (each.environments or [environment.name])
        and runs_in_cluster(each, environment)
        and not PROVIDERS[environment.cluster.provider].simulated
    ]


def named(item: Object) -> str:
    """Kind and name of an object, with its namespace unless it is that of the clusters."""
    space = item["metadata"].get("namespace")
    where = f"{space}/" if space and space != names.CLUSTERS_NAMESPACE else ""
    return f"{item['kind']} {where}{item['metadata']['name']}"


def all_named(items: Sequence[Object]) -> list[str]:
    return [named(each) for each in items]


def _owners(item: Object) -> Iterator[str]:
    for each in item["metadata"].get("ownerReferences") or []:
        yield each["uid"]


def _is_of_cluster(item: Object) -> bool:
    return (
        tracker(item) == CLUSTERS
        and item["metadata"].get("namespace") == CLUSTERS_NAMESPACE
        and ENVIRONMENT in labels_of(item)
    )


def _group(item: Object) -> str:
    return str(item["apiVersion"]).partition("/")[0]


def _environment_and_cloud(claim: Object) -> tuple[str, str]:
    """Environment and cloud of a claim; "" if not specified."""
    spec = claim.get("spec") or {}
    chosen = ((spec.get("crossplane") or {}).get("compositionSelector") or {}).get("matchLabels")
    return str(spec.get("environment") or ""), str((chosen or {}).get(CLOUD) or "")


def _is_used(item: Object, used: set[tuple[str, str]]) -> bool:
    """Whether a kept claim may use it."""
    environment = item["metadata"]["labels"][ENVIRONMENT]
    return any(
        used_in in ("", environment) and (not cloud or f".{cloud}." in f".{_group(item)}")
        for used_in, cloud in used
    )
