"""`ucp clusters forget`: deregisters a declared cluster, recorded on its owner."""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.errors import UcpError, UsageError, unknown_name
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET, Kube, KubeError, NotFound, Object, annotations_of
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.sources import OwnerRef
from k8s_ucp.reconciler.registration.notes import read_notes

PERSON = "true"
TEARDOWN = "teardown"
"""Value of the annotation for `ucp destroy`; if it is interrupted, a start removes it again."""


def registered(kube: Kube) -> dict[str, Registration]:
    """Clusters that we registered, by name. Raises KubeError."""
    found = kube.list_all(SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster")
    known = [Registration.of(each) for each in found]
    return {each.cluster: each for each in known if each.ours}


def registration_of(kube: Kube, cluster: str) -> Registration:
    """A cluster that we registered. Raises KubeError, or UsageError that lists all of them."""
    known = registered(kube)
    if cluster not in known:
        present = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"cluster {cluster} is not registered by ucp; registered: {present}", next="ucp status"
        )
    return known[cluster]


def forget(kube: Kube, registration: Registration, by: str = PERSON) -> None:
    """Annotate owner and cluster Secret, so that the reconciler drains and deregisters the cluster.

    by: PERSON or TEARDOWN. Raises KubeError, UcpError.
    """
    if registration.owner:
        # The owner first: otherwise the cluster could be registered again after its deregistration.
        _annotate(kube, registration.owner, by)
    change = {"metadata": {"annotations": {names.FORGET: "true"}}}
    kube.patch(SECRET, registration.name, names.ARGOCD_NAMESPACE, change)


def undo_teardown(kube: Kube) -> list[str]:
    """Remove the annotations of a teardown, and keep those of people. Raises UcpError."""
    found = []
    for cluster in _declared(kube):
        removed = [_annotate(kube, each, None, of=TEARDOWN) for each in _owners(kube, cluster)]
        found += [cluster] if any(removed) else []
    return found


def undo(kube: Kube, cluster: str) -> None:
    """Remove the annotation from the cluster's owner. Raises UcpError if there is none."""
    for owner in _owners(kube, cluster):
        if _annotate(kube, owner, None):
            return
    if cluster not in (known := _declared(kube)):
        raise unknown_name("cluster", cluster, known, next="ucp status")
    raise UcpError(
        f"cluster {cluster} was not deregistered with `ucp clusters forget`", next="ucp doctor"
    )


def _declared(kube: Kube) -> list[str]:
    """Names of the clusters whose owners can be annotated. Raises KubeError."""
    local = kube.list_all(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)
    noted = (each["owner"]["name"] for each in read_notes(kube).values())
    return sorted(
        {each["metadata"]["name"] for each in local}
        | {each.removesuffix("-kubeconfig") for each in noted}
    )


def _owners(kube: Kube, cluster: str) -> list[OwnerRef]:
    local = OwnerRef(
        f"{names.GROUP}/v1alpha1", "LocalCluster", names.CLUSTERS_NAMESPACE, cluster, ""
    )
    noted = [each["owner"] for each in read_notes(kube).values()]
    return [
        local,
        *(
            OwnerRef(each["apiVersion"], each["kind"], each["namespace"], each["name"], "")
            for each in noted
            if each["name"].removesuffix("-kubeconfig") == cluster
        ),
    ]


def _annotate(kube: Kube, owner: OwnerRef, value: str | None, *, of: str | None = None) -> bool:
    """Set or remove the annotation; False if there is no such object, or nothing to remove.

    value: None removes it. of: remove it only if it has this value. An existing one isn't changed.
    """
    try:
        kind = kube.kind_of(owner.api_version, owner.kind)
        namespace = owner.namespace if kind.namespaced else None
        found: Object = kube.get(kind, owner.name, namespace)
        present = annotations_of(found).get(names.FORGET)
        if value is None and (present is None or of not in (None, present)):
            return False
        if value is not None and present is not None:
            return True
        change = {"metadata": {"annotations": {names.FORGET: value}}}
        kube.patch(kind, owner.name, namespace, change)
    except NotFound:
        return False
    except KubeError as error:
        raise UcpError(f"failed to annotate {owner.kind} {owner.name}: {error.message}") from error
    return True
