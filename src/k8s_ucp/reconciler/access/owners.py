"""Finds the owners of clusters, and reports one as deleted only if the API server says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from k8s_ucp.kube import Kube, NotFound, Object
from k8s_ucp.reconciler.access.sources import (
    KubeconfigSource,
    OwnerRef,
    describe,
    owner_of,
    pointed_to,
)
from k8s_ucp.reconciler.runtime.conditions import is_true

if TYPE_CHECKING:
    # Commands import this module, and need no informers.
    from k8s_ucp.reconciler.access.shared_informers import SharedInformers


class Owners:
    """Looks owners up: LocalClusters from the informer, everything else and absence live."""

    def __init__(self, kube: Kube, informers: SharedInformers) -> None:
        self._kube = kube
        self._informers = informers

    def find(self, ref: OwnerRef) -> Object | None:
        """The object of that kind and name, even if it was recreated with another UID.

        None only if the API server reported this very name as not found: an empty list, or a kind
        that isn't served at the moment, is not enough. Raises KubeError.
        """
        if ref.local_cluster:
            known = self._informers.local_clusters.store.get(f"{ref.namespace}/{ref.name}")
            if known:
                return known
        if (ref.api_version, ref.kind) == ("v1", "Secret"):
            labeled = self._informers.source(f"{ref.namespace}/{ref.name}")
            if labeled:
                return labeled
        return _find(self._kube, ref)

    def cluster_of(self, owner: Object) -> Object | None:
        """The cluster object that an owner refers to; None if there is none.

        Raises KubeError.
        """
        ref = _cluster_ref(owner)
        return self.find(ref) if ref else None


def source_in(kube: Kube, secret: Object) -> KubeconfigSource | None:
    """What the owner of a kubeconfig Secret declares, without informers.

    None if the Secret has no owner, or that is gone. Raises KubeError.
    """
    ref = owner_of(secret)
    owner = _find(kube, ref) if ref else None
    if ref is None or owner is None or owner["metadata"]["uid"] != ref.uid:
        return None
    cluster = _cluster_ref(owner)
    return describe(secret, owner, _find(kube, cluster) if cluster else None)


def _find(kube: Kube, ref: OwnerRef) -> Object | None:
    """None only if the API server reported this very name as not found. Raises KubeError."""
    kind = kube.kind_of(ref.api_version, ref.kind)
    try:
        found = kube.get(kind, ref.name, ref.namespace if kind.namespaced else None)
    except NotFound as error:
        if f'"{ref.name}" not found' in error.message:
            return None
        raise
    found.setdefault("apiVersion", ref.api_version)
    found.setdefault("kind", ref.kind)
    return found


def _cluster_ref(owner: Object) -> OwnerRef | None:
    """The cluster object that an owner refers to; None if it is the cluster itself."""
    reference = pointed_to(owner)
    if reference is None or not reference[2]:
        return None
    kind, namespace, name = reference
    return OwnerRef(owner["apiVersion"], kind, namespace, name, "")


def same_but_status(
    before: Object | None, after: Object | None, *, watched: Iterable[str] = ()
) -> bool:
    """Whether only parts of the status changed on which no controller acts.

    watched: types of conditions whose changes count.
    """
    if before is None or after is None:
        return False
    for name in ("generation", "deletionTimestamp", "labels", "annotations", "uid"):
        if before["metadata"].get(name) != after["metadata"].get(name):
            return False
    return all(is_true(before, each) == is_true(after, each) for each in watched)
