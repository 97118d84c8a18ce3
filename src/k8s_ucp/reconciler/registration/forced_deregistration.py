"""`ucp clusters forget`: deregisters a declared cluster, recorded on its owner."""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET, Kube, KubeError, NotFound, Object
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.sources import OwnerRef
from k8s_ucp.reconciler.registration.notes import read_notes

PERSON = "true"
TEARDOWN = "teardown"
"""Value of the mark of a `ucp destroy`: where that was cut off, a start takes it off again."""


def registered(kube: Kube) -> dict[str, Registration]:
    """Clusters that we registered, by name. Raises KubeError."""
    found = kube.list_all(SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster")
    known = [Registration.of(each) for each in found]
    return {each.cluster: each for each in known if each.ours}


def forget(kube: Kube, cluster: str, by: str = PERSON) -> Registration:
    """Mark owner and cluster Secret; the reconciler drains and deregisters it.

    by: PERSON or TEARDOWN. Answers what was registered. Raises UcpError that names the clusters
    there are, KubeError.
    """
    known = registered(kube)
    if cluster not in known:
        present = ", ".join(sorted(known)) or "none"
        raise UcpError(
            f"cluster {cluster} is not registered by ucp; registered: {present}", next="ucp status"
        )
    found = known[cluster]
    if found.owner:
        # First, since a cluster that is deregistered and not marked would be registered again.
        _mark(kube, found.owner, by)
    change = {"metadata": {"annotations": {names.FORGET: "true"}}}
    kube.patch(SECRET, found.name, names.ARGOCD_NAMESPACE, change)
    return found


def undo_teardown(kube: Kube) -> list[str]:
    """Take the marks of a teardown off; what a person marked stays so. Raises UcpError."""
    local = kube.list_all(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)
    clusters = {each["metadata"]["name"] for each in local}
    clusters |= {e["owner"]["name"].removesuffix("-kubeconfig") for e in read_notes(kube).values()}
    found = []
    for cluster in sorted(clusters):
        marked = [_mark(kube, each, None, of=TEARDOWN) for each in _owners(kube, cluster)]
        found += [cluster] if any(marked) else []
    return found


def undo(kube: Kube, cluster: str) -> None:
    """Take the mark off whatever declares the cluster. Raises UcpError where nothing is marked."""
    for owner in _owners(kube, cluster):
        if _mark(kube, owner, None):
            return
    raise UcpError(
        f"cluster {cluster} was not deregistered with `ucp clusters forget`", next="ucp doctor"
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


def _mark(kube: Kube, owner: OwnerRef, value: str | None, *, of: str | None = None) -> bool:
    """False where there is no such object, or no mark to take off, or to take off of another's.

    value: None takes it off. A mark that is there is not changed.
    """
    try:
        kind = kube.kind_of(owner.api_version, owner.kind)
        namespace = owner.namespace if kind.namespaced else None
        found: Object = kube.get(kind, owner.name, namespace)
        mark = (found["metadata"].get("annotations") or {}).get(names.FORGET)
        if value is None and (mark is None or of not in (None, mark)):
            return False
        if value is not None and mark is not None:
            return True
        change = {"metadata": {"annotations": {names.FORGET: value}}}
        kube.patch(kind, owner.name, namespace, change)
    except NotFound:
        return False
    except KubeError as error:
        raise UcpError(f"failed to annotate {owner.kind} {owner.name}: {error.message}") from error
    return True
