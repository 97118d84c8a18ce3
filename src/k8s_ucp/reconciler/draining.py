"""Drains a cluster: deletes its Applications, and finds load balancers and volumes outside of it.

A DrainTimer keeps state. `delete_applications`, `end_sync`, `request_refresh` and `set_held` write
and are idempotent; `held_on` only reads; everything else is pure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    APPLICATION,
    PERSISTENT_VOLUME,
    SERVICE,
    Conflict,
    Kube,
    KubeError,
    NotFound,
    Object,
    annotations_of,
    conditions_of,
    labels_of,
    mapping_in,
    namespaced_name,
)
from k8s_ucp.names import PAUSED

ASK_AGAIN = 5.0
"""Seconds."""
_DELETION_FAILED = "DeletionError"
_CLOUD_FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
_ON_NODES = "rancher.io/local-path"
"""Provisioner of kind: its volumes are directories on the cluster's nodes, deleted with them."""


class DrainTimer:
    """How long this process has been draining clusters, in seconds.

    The time for which the machine was suspended or the core cluster stopped doesn't count, nor a
    correction of the clock: nothing was drained then.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began: dict[str, float] = {}

    def restart(self, uid: str) -> None:
        self._began[uid] = self._monotonic()

    def waited(self, uid: str) -> float:
        """Since the first call for this UID, or the restart."""
        now = self._monotonic()
        return now - self._began.setdefault(uid, now)

    def forget(self, uid: str) -> None:
        self._began.pop(uid, None)


def applications_of(
    applications: Iterable[Object], cluster: str, server: str
) -> tuple[list[Object], list[Object]]:
    """The Applications whose destination is the cluster: (ours, others).

    Ours are those that our ApplicationSets generated or that carry our label; they are deleted with
    the cluster. An Application that a person created stays: they have to move or delete it.
    """
    ours: list[Object] = []
    others: list[Object] = []
    for each in applications:
        destination = (each.get("spec") or {}).get("destination") or {}
        named = destination.get("name") == cluster
        if named or (server and destination.get("server") == server):
            (ours if _ours(each) else others).append(each)
    return ours, others


def _ours(application: Object) -> bool:
    metadata = application["metadata"]
    labels = labels_of(application)
    if labels.get(names.MANAGED_BY) == names.OURS:
        return True
    return names.TOPOLOGY in labels and any(
        owner.get("controller") and owner.get("kind") == "ApplicationSet"
        for owner in metadata.get("ownerReferences") or []
    )


def delete_applications(kube: Kube, applications: Iterable[Object]) -> None:
    """Delete Applications with all they deployed; end the sync of those being deleted already."""
    for application in applications:
        metadata = application["metadata"]
        if metadata.get("deletionTimestamp"):
            end_sync(kube, application)
            continue
        finalizers = metadata.get("finalizers") or []
        try:
            if not any(name.startswith(names.APP_FINALIZER) for name in finalizers):
                kube.patch(
                    APPLICATION,
                    metadata["name"],
                    metadata["namespace"],
                    {
                        "metadata": {
                            "resourceVersion": metadata["resourceVersion"],
                            "finalizers": [*finalizers, names.APP_FINALIZER],
                        }
                    },
                )
            kube.delete(APPLICATION, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        except Conflict:
            # Argo CD updates the status all the time; the next round sees the new version.
            continue


def end_sync(kube: Kube, application: Object) -> None:
    """Make Argo CD terminate the sync of an Application that is being deleted.

    Argo CD doesn't delete an Application during a sync, and retries a failing sync without end.
    Raises KubeError.
    """
    metadata = application["metadata"]
    state = (application.get("status") or {}).get("operationState") or {}
    if "operation" not in application or state.get("phase") != "Running":
        return
    change = {
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "status": {"operationState": {"phase": "Terminating"}},
    }
    # Argo CD updates the status all the time; the next round sees the new version.
    with suppress(Conflict, NotFound):
        kube.patch(APPLICATION, metadata["name"], metadata["namespace"], change)


def failed_deletions(
    applications: Iterable[Object], asked: Mapping[str, float], *, now: float
) -> list[str]:
    """Names of Applications whose deletion failed in Argo CD, and that should be retried now.

    Otherwise Argo CD retries at its next poll, which may be hours away if webhooks report the
    pushes.
    asked: time of the last request by name; now: the current time, both in seconds of one clock.
    """
    return [
        each["metadata"]["name"]
        for each in applications
        if "deletionTimestamp" in each["metadata"]
        and any(one.get("type") == _DELETION_FAILED for one in conditions_of(each))
        and now - asked.get(each["metadata"]["name"], -math.inf) >= ASK_AGAIN
    ]


def request_refresh(kube: Kube, applications: Iterable[str]) -> None:
    """Make Argo CD refresh the Applications now."""
    for name in applications:
        # Ignore those that were deleted meanwhile.
        with suppress(NotFound):
            change = {"metadata": {"annotations": names.REFRESH}}
            kube.patch(APPLICATION, name, names.ARGOCD_NAMESPACE, change)


def holding(services: Iterable[Object], volumes: Iterable[Object]) -> list[str]:
    """Load balancers and volumes that a cluster's objects still occupy, in words, sorted.

    Load balancers that were never provisioned, and volumes that nothing would delete, don't count.
    """
    found = [
        f"load balancer of Service {namespaced_name(each)}" for each in services if _balances(each)
    ]
    found += [f"PersistentVolume {namespaced_name(each)}" for each in volumes if _occupies(each)]
    return sorted(found)


def holders(services: Iterable[Object], volumes: Iterable[Object]) -> list[Object]:
    """The Services and PersistentVolumes that `holding` names."""
    return [*filter(_balances, services), *filter(_occupies, volumes)]


def held_on(provider: ClusterProvider, cluster: str) -> list[str]:
    """Load balancers and volumes that a cluster occupies now, in words.

    Empty if the cluster doesn't respond, since nobody could delete anything there either; for
    existing clusters, whose load balancers and volumes belong to their users; and for simulated
    ones, which have no real addresses and volumes.
    """
    if provider.info.adopts or provider.info.simulated:
        return []
    try:
        if not provider.state(cluster).ready:
            return []
        kube = Kube(provider.kubeconfig(cluster))
    except UcpError:
        return []
    try:
        return holding(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))
    except KubeError:
        return []
    finally:
        kube.close()


def _balances(service: Object) -> bool:
    if mapping_in(service, "spec").get("type") != "LoadBalancer":
        return False
    given = mapping_in(service, "status", "loadBalancer").get("ingress")
    finalizers = service["metadata"].get("finalizers")
    return bool(given) or (isinstance(finalizers, list) and _CLOUD_FINALIZER in finalizers)


def _occupies(volume: Object) -> bool:
    spec = mapping_in(volume, "spec")
    provisioner = annotations_of(volume).get(_PROVISIONED, _ON_NODES)
    return provisioner != _ON_NODES and spec.get("persistentVolumeReclaimPolicy") == "Delete"


def in_words(words: list[str], noun: str) -> str:
    """`2 Applications left: a, b`; long lists are cut."""
    shown = ", ".join(words[:5]) + (", ..." if len(words) > 5 else "")
    return f"{len(words)} {noun}{'' if len(words) == 1 else 's'} left: {shown}"


def set_held(kube: Kube, item: Object, *, held: bool) -> None:
    """Have Crossplane leave a resource as it is, or not any more. Raises KubeError."""
    about = item["metadata"]
    kind = kube.kind_of(item["apiVersion"], item["kind"])
    value = "true" if held else None
    with suppress(NotFound):
        kube.patch(
            kind,
            about["name"],
            about.get("namespace"),
            {"metadata": {"annotations": {PAUSED: value, names.HELD: value}}},
        )
