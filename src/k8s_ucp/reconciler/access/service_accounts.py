"""Our identities on an app cluster, one for Argo CD and one for mirrors, with their rights.

Profile `admin`: Argo CD may do everything, but apps stay out of the platform's namespaces
(fence.py). Profile `scoped`: everything inside the listed namespaces and nothing outside; we create
those namespaces, since such an identity can't. The mirror identity gets its rights from the
mirrors, in their target namespaces only.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Conflict,
    Forbidden,
    Kind,
    Kube,
    NotFound,
    Object,
    annotations_of,
    labels_of,
)
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.access.fence import fence
from k8s_ucp.reconciler.access.sources import KubeconfigSource

_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_CONFINED = ("baseline", "restricted")

CLUSTER_TAKEN, IDENTITY_TAKEN = "ClusterTaken", "IdentityTaken"
"""Reasons of a refusal: another topology uses the cluster; an object has the name of ours."""


def desired_objects(source: KubeconfigSource) -> list[Object]:
    """Objects of a source's profile, except the identities' namespace, in the order of creation."""
    objects = [_account(names.ARGOCD_IDENTITY), _account(names.MIRROR_IDENTITY)]
    if not source.scoped:
        return [*objects, _binding(CLUSTER_ROLE_BINDING, None, "ClusterRole", "cluster-admin")]
    for namespace in source.namespaces:
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        objects += [
            described(NAMESPACE, namespace),
            described(ROLE, names.ARGOCD_IDENTITY, namespace, rules=[everything]),
            _binding(ROLE_BINDING, namespace, "Role", names.ARGOCD_IDENTITY),
        ]
    return objects


def establish(kube: Kube, source: KubeconfigSource, topology: str, *, fresh: bool) -> None:
    """Create the identities and their rights on the app cluster; idempotent.

    fresh: nothing of ours existed before, so no rights have to be revoked.
    Raises KubeError, or NoAccess if another topology uses the cluster or an object with the name of
    ours isn't ours.
    """
    claim(kube, topology)
    for each in desired_objects(source):
        if each["kind"] in (ROLE.kind, ROLE_BINDING.kind):
            each["metadata"]["labels"][names.TOPOLOGY] = topology
        ensure(kube, each)
    for namespace in source.team_namespaces if source.scoped else ():
        _confine(kube, namespace)
    if not source.scoped:
        _fence(kube, source.environment or "")
    if not fresh:
        _withdraw(kube, source, topology)


def establish_mirror(kube: Kube, topology: str) -> None:
    """Create the mirror identity, without any rights. Raises the errors of `establish`."""
    claim(kube, topology)
    ensure(kube, _account(names.MIRROR_IDENTITY))


def claim(kube: Kube, topology: str) -> None:
    """Create the identities' namespace and label it with the topology; idempotent.

    The identities have the same names in every topology: two topologies on one cluster would revoke
    each other's rights, so the second one is refused. A namespace without the label was created by
    an older version or by a person; the first topology gets it. Raises KubeError, NoAccess.
    """
    namespace = described(NAMESPACE, names.IDENTITY_NAMESPACE)
    namespace["metadata"]["labels"][names.TOPOLOGY] = topology
    try:
        kube.create(namespace)
        return
    except Conflict:
        found = kube.get(NAMESPACE, names.IDENTITY_NAMESPACE)
    check_claim(found, topology)
    if names.TOPOLOGY not in labels_of(found):
        version = found["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version, "labels": {names.TOPOLOGY: topology}}}
        kube.patch(NAMESPACE, names.IDENTITY_NAMESPACE, None, change)


def check_claim(namespace: Object | None, topology: str) -> None:
    """Raises NoAccess if the identities' namespace belongs to another topology."""
    labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    holder = labels.get(names.TOPOLOGY, topology)
    if holder != topology:
        raise NoAccess(
            CLUSTER_TAKEN,
            f"the cluster is already used by topology {holder} (label of its namespace "
            f"{names.IDENTITY_NAMESPACE}); a cluster can belong to one topology only",
        )


def remove(kube: Kube, topology: str, *, timeout: float) -> None:
    """Delete our identities and their rights, and nothing else. Raises KubeError, NoAccess.

    The ClusterRoleBinding may be what permits this, so it is deleted last.
    """
    kube.request("GET", "/version", timeout=timeout)  # fails fast if the cluster is dead
    namespace = kube.find(NAMESPACE, names.IDENTITY_NAMESPACE)
    check_claim(namespace, topology)
    # The binding first: a binding without its policy would be an error for every request.
    for each in reversed(fence("")):
        with suppress(NotFound, Forbidden):
            kind = kube.kind_of(each["apiVersion"], each["kind"])
            found = kube.find(kind, each["metadata"]["name"])
            if found and is_ours(found):
                kube.delete(kind, found["metadata"]["name"], uid=found["metadata"]["uid"])
    if namespace and is_ours(namespace):
        uid = namespace["metadata"]["uid"]
        kube.delete(NAMESPACE, names.IDENTITY_NAMESPACE, uid=uid)
    for kind in (ROLE_BINDING, ROLE):
        for each in kube.list_all(kind, labels=f"{names.MANAGED_BY}={names.OURS}"):
            if _is_of(each, topology):
                metadata = each["metadata"]
                kube.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    binding = kube.find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
    if binding and is_ours(binding):
        kube.delete(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY, uid=binding["metadata"]["uid"])


def probe(kube: Kube, namespaces: tuple[str, ...], *, timeout: float) -> None:
    """Check that the server responds to Argo CD's identity and accepts its token and rights.

    namespaces: of a scoped identity; empty for admin. Raises KubeError.
    """
    namespace = namespaces[0] if namespaces else names.IDENTITY_NAMESPACE
    kube.request("GET", SERVICE_ACCOUNT.path(namespace), query={"limit": "1"}, timeout=timeout)


def ensure(kube: Kube, item: Object) -> None:
    """Create an object of ours, or correct it; idempotent.

    What Argo CD applied in a namespace is corrected, too: otherwise, one app could replace the Role
    there, and no token for the cluster would be renewed any more.
    Raises KubeError, or NoAccess if an object of that name isn't ours.
    """
    try:
        kube.create(item)
        return
    except Conflict:
        pass
    kind = kube.kind_of(item["apiVersion"], item["kind"])
    metadata = item["metadata"]
    found = kube.get(kind, metadata["name"], metadata.get("namespace"))
    fields = ("roleRef", "subjects", "rules")
    parts: dict[str, Any] = {name: item[name] for name in fields if name in item}
    if all(found.get(name) == value for name, value in parts.items()):
        return
    applied = "namespace" in metadata and names.TRACKING_ID in annotations_of(found)
    if not (is_ours(found) or applied):
        raise NoAccess(
            IDENTITY_TAKEN,
            f"{item['kind']} {metadata['name']} already exists on the app cluster and "
            "was not created by ucp; delete or rename it",
        )
    if found.get("roleRef") != item.get("roleRef"):
        # The roleRef of a binding is immutable.
        kube.delete(kind, metadata["name"], metadata.get("namespace"), uid=found["metadata"]["uid"])
        kube.create(item)
        return
    change = {"metadata": {"labels": metadata["labels"]}, **parts}
    kube.patch(kind, metadata["name"], metadata.get("namespace"), change)


def _confine(kube: Kube, namespace: str) -> None:
    """Let no pod of a team get access to its node; a stricter level of somebody else stays."""
    if labels_of(kube.get(NAMESPACE, namespace)).get(_POD_SECURITY) not in _CONFINED:
        kube.patch(
            NAMESPACE, namespace, None, {"metadata": {"labels": {_POD_SECURITY: "baseline"}}}
        )


def _fence(kube: Kube, environment: str) -> None:
    """Apply the fence, if the API server supports such policies (since 1.30)."""
    for each in fence(environment):
        try:
            kind = kube.kind_of(each["apiVersion"], each["kind"])
        except NotFound:
            return
        found = kube.find(kind, each["metadata"]["name"])
        if found is not None and not is_ours(found):
            raise NoAccess(
                IDENTITY_TAKEN,
                f"{kind.kind} {each['metadata']['name']} already exists on the app "
                "cluster and was not created by ucp; delete or rename it",
            )
        kube.apply(each)


def _withdraw(kube: Kube, source: KubeconfigSource, topology: str) -> None:
    """Revoke rights that another profile, or a longer list of namespaces, had granted."""
    if not source.scoped:
        return
    binding = kube.find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
    if binding and is_ours(binding):
        kube.delete(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY, uid=binding["metadata"]["uid"])
    for kind in (ROLE_BINDING, ROLE):
        for each in kube.list_all(kind, labels=f"{names.MANAGED_BY}={names.OURS}"):
            metadata = each["metadata"]
            listed = metadata["namespace"] in source.namespaces
            argocds = metadata["name"] == names.ARGOCD_IDENTITY and _is_of(each, topology)
            if argocds and not listed:
                kube.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])


def is_ours(item: Object) -> bool:
    """Whether an object has our label."""
    return labels_of(item).get(names.MANAGED_BY) == names.OURS


def _is_of(item: Object, topology: str) -> bool:
    """Whether a Role or binding belongs to one of our identities and to no other topology.

    On the core cluster of another topology, other Roles have our label, too. Roles of older
    versions have no topology label, and are recognized by their names.
    """
    metadata = item["metadata"]
    return (
        is_ours(item)
        and metadata["name"] in (names.ARGOCD_IDENTITY, names.MIRROR_IDENTITY)
        and metadata["labels"].get(names.TOPOLOGY, topology) == topology
    )


def described(kind: Kind, name: str, namespace: str | None = None, **parts: Any) -> Object:
    """A new object with our label."""
    return kind.object(name, namespace, labels={names.MANAGED_BY: names.OURS}, **parts)


def _account(name: str) -> Object:
    # Tokens are requested; no pod of the app cluster mounts them.
    return described(
        SERVICE_ACCOUNT, name, names.IDENTITY_NAMESPACE, automountServiceAccountToken=False
    )


def _binding(kind: Kind, namespace: str | None, role_kind: str, role: str) -> Object:
    subject = {
        "kind": "ServiceAccount",
        "name": names.ARGOCD_IDENTITY,
        "namespace": names.IDENTITY_NAMESPACE,
    }
    return described(
        kind,
        names.ARGOCD_IDENTITY,
        namespace,
        roleRef={"apiGroup": ROLE.group, "kind": role_kind, "name": role},
        subjects=[subject],
    )
