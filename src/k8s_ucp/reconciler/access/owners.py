"""Finding what declares a cluster, and being sure before saying that it is gone."""

from __future__ import annotations

from collections.abc import Iterable

from k8s_ucp.kube import Kube, NotFound, Object
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.access.sources import OwnerRef, pointed_to
from k8s_ucp.reconciler.runtime.conditions import is_true


class Owners:
    """Looks owners up: LocalClusters from the watch, everything else, and absence, live."""

    def __init__(self, kube: Kube, informers: SharedInformers) -> None:
        self._kube = kube
        self._informers = informers

    def find(self, ref: OwnerRef) -> Object | None:
        """The object of that kind and name, also where it was made anew with another uid.

        None only if the API server said so for this very name: a list that came back empty, or a
        kind that isn't served at the moment, is not enough. Raises KubeError.
        """
        if ref.local_cluster:
            known = self._informers.local_clusters.store.get(f"{ref.namespace}/{ref.name}")
            if known:
                return known
        if (ref.api_version, ref.kind) == ("v1", "Secret"):
            labelled = self._informers.source(f"{ref.namespace}/{ref.name}")
            if labelled:
                return labelled
        kind = self._kube.kind_of(ref.api_version, ref.kind)
        try:
            found = self._kube.get(kind, ref.name, ref.namespace if kind.namespaced else None)
        except NotFound as error:
            if f'"{ref.name}" not found' in error.message:
                return None
            raise
        found.setdefault("apiVersion", ref.api_version)
        found.setdefault("kind", ref.kind)
        return found

    def cluster_of(self, owner: Object) -> Object | None:
        """The object that knows the cluster where the owner only points to it, if it is there.

        Raises KubeError.
        """
        reference = pointed_to(owner)
        if reference is None or not reference[2]:
            return None
        kind, namespace, name = reference
        return self.find(OwnerRef(owner["apiVersion"], kind, namespace, name, ""))


def same_but_status(
    before: Object | None, after: Object | None, *, watched: Iterable[str] = ()
) -> bool:
    """Only a part of the status changed that nobody acts on.

    watched: types of conditions whose change counts.
    """
    if before is None or after is None:
        return False
    for name in ("generation", "deletionTimestamp", "labels", "annotations", "uid"):
        if before["metadata"].get(name) != after["metadata"].get(name):
            return False
    return all(is_true(before, each) == is_true(after, each) for each in watched)
