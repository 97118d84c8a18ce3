"""What remains of a removed environment's cluster, and why it is not deleted yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from k8s_ucp import names
from k8s_ucp.errors import some_of
from k8s_ucp.inspect.crossplane_objects import environment_resources
from k8s_ucp.inspect.resource_conditions import last_error
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET, Kube, Object, annotations_of
from k8s_ucp.names import PAUSED
from k8s_ucp.providers import PROVIDERS

_CLUSTER_GROUPS = {each.managed.group for each in PROVIDERS.values() if each.managed}
CLUSTERS = "clusters"
"""The Application that contains the resources of environments' clusters."""


@dataclass(frozen=True)
class ClusterDeletion:
    """A cluster that is being deleted. resources: its cloud resources before the deletion."""

    kube: Kube
    cluster: str
    resources: Sequence[Object] = ()

    def has_begun(self) -> bool:
        """Whether the cluster, or a part of it, is being deleted already. Raises KubeError."""
        local = self.kube.find(LOCAL_CLUSTER, self.cluster, names.CLUSTERS_NAMESPACE)
        objects = [*self.resources, *([local] if local else [])]
        return any("deletionTimestamp" in each["metadata"] for each in objects)

    def left(self) -> str:
        """What still exists, each with its last error; "" once everything is deleted.

        Raises KubeError.
        """
        found = [*self._local(), *map(in_words, remaining(self.kube, self.resources))]
        if not found and self.resources and self._is_registered():
            return f"Argo CD's Secret of {self.cluster} is being deleted"
        return some_of(found)

    def _local(self) -> Iterator[str]:
        item = self.kube.find(LOCAL_CLUSTER, self.cluster, names.CLUSTERS_NAMESPACE)
        if item is not None:
            yield last_error(item) or "it still exists"

    def _is_registered(self) -> bool:
        secret = names.cluster_secret(self.cluster)
        return self.kube.find(SECRET, secret, names.ARGOCD_NAMESPACE) is not None


def remaining(kube: Kube, items: Iterable[Object]) -> list[Object]:
    """Current versions of the objects that still exist. Raises KubeError."""
    found = []
    for each in items:
        about = each["metadata"]
        kind = kube.kind_of(each["apiVersion"], each["kind"])
        now = kube.find(kind, about["name"], about["namespace"])
        if now is not None and now["metadata"]["uid"] == about["uid"]:
            found.append(now)
    return sorted(found, key=lambda now: _is_only_deleting(in_words(now)))


def to_hold(resources: Sequence[Object]) -> list[Object]:
    """Networks and roles of clusters that are about to be deleted with them, and must come after.

    Argo CD deletes all at once, and AWS deletes a role although a cluster uses it, which then can't
    be deleted.
    """
    if not any(map(is_of_cluster_service, resources)):
        return []
    return [
        each
        for each in resources
        if not is_of_cluster_service(each) and PAUSED not in annotations_of(each)
    ]


def needed_until_deleted(resources: Sequence[Object]) -> list[Object]:
    """Resources to hold because their cloud deletes them even in use, unlike networks."""
    return [each for each in to_hold(resources) if str(each["apiVersion"]).startswith("iam.aws.")]


def to_release(left: Sequence[Object]) -> list[Object]:
    """The held resources, once no cluster is left."""
    if any(map(is_of_cluster_service, left)):
        return []
    return [each for each in left if names.HELD in annotations_of(each)]


def is_of_cluster_service(item: Object) -> bool:
    """A cluster in a cloud or a part of it, but not its network or a role."""
    return str(item["apiVersion"]).partition("/")[0] in _CLUSTER_GROUPS


def in_words(item: Object) -> str:
    """An object that is to be deleted, and why it still exists."""
    return f"{item['kind']} {item['metadata']['name']} ({_state(item)})"


def cluster_resources(
    kube: Kube, applications: Iterable[Object], environment: str | None = None
) -> list[Object]:
    """Cloud resources of the clusters of environments, or of one of them. Raises KubeError.

    Without databases and their networks, which are in another Application and stay.
    """
    declaring = [each for each in applications if each["metadata"]["name"] == CLUSTERS]
    declared = {
        (str(each.get("group")), each["kind"], each.get("name"))
        for application in declaring
        for each in (application.get("status") or {}).get("resources") or []
    }
    return [
        each
        for each in environment_resources(kube, declaring)
        if environment in (None, each["metadata"]["labels"][names.ENVIRONMENT])
        and (each["apiVersion"].partition("/")[0], each["kind"], each["metadata"]["name"])
        in declared
    ]


_DELETING = "being deleted"
_UNTOUCHED = "not deleted yet"
_WAITING = "waits for the cluster"


def _state(item: Object) -> str:
    deleting = "deletionTimestamp" in item["metadata"]
    if names.HELD in annotations_of(item):
        return _WAITING
    return last_error(item) or (_DELETING if deleting else _UNTOUCHED)


def _is_only_deleting(words: str) -> bool:
    """False if it failed. Failures come first: the rest may only wait for them."""
    return words.endswith((f"({_DELETING})", f"({_UNTOUCHED})", f"({_WAITING})"))
