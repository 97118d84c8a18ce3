"""Who we are on an app cluster: one identity for Argo CD, one for mirrors, each with its rights.

`admin`: Argo CD may do everything there. `scoped`: everything inside the named namespaces, nothing
outside; we make those namespaces, since such an identity can't. The mirror identity gets its
rights with the mirrors, in their target namespaces only.
"""

from __future__ import annotations

from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Conflict,
    Kube,
    Object,
)
from k8s_ucp.reconciler import marks
from k8s_ucp.reconciler.sources import Source

_RBAC = "rbac.authorization.k8s.io"
_OURS = {marks.MANAGED_BY: marks.OURS}


def wanted(source: Source) -> list[Object]:
    """What must be there for a source's profile, in the order of making."""
    objects = [
        described("v1", "Namespace", marks.IDENTITY_NAMESPACE),
        _account(marks.ARGOCD_IDENTITY),
        _account(marks.MIRROR_IDENTITY),
    ]
    if not source.scoped:
        return [*objects, _binding("ClusterRoleBinding", None, "ClusterRole", "cluster-admin")]
    for namespace in source.namespaces:
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        objects += [
            described("v1", "Namespace", namespace),
            described(f"{_RBAC}/v1", "Role", marks.ARGOCD_IDENTITY, namespace, rules=[everything]),
            _binding("RoleBinding", namespace, "Role", marks.ARGOCD_IDENTITY),
        ]
    return objects


def establish(kube: Kube, source: Source, *, fresh: bool) -> None:
    """Make the identities and their rights on the app cluster; idempotent.

    fresh: nothing of ours was there before, so no right has to be taken back.
    Raises KubeError, or UcpError where something of the same name isn't ours.
    """
    for each in wanted(source):
        ensure(kube, each)
    if not fresh:
        _withdraw(kube, source)


def establish_mirror(kube: Kube) -> None:
    """Make the mirror identity alone, without any right. Raises KubeError."""
    for each in (
        described("v1", "Namespace", marks.IDENTITY_NAMESPACE),
        _account(marks.MIRROR_IDENTITY),
    ):
        ensure(kube, each)


def remove(kube: Kube, *, timeout: float) -> None:
    """Take our identities and their rights away; what isn't ours stays. Raises KubeError.

    The right to do this may be one of those, so it goes last.
    """
    kube.request("GET", "/version", timeout=timeout)  # one that is dead is found out quickly
    namespace = kube.find(NAMESPACE, marks.IDENTITY_NAMESPACE)
    if namespace and is_ours(namespace):
        uid = namespace["metadata"]["uid"]
        kube.delete(NAMESPACE, marks.IDENTITY_NAMESPACE, uid=uid)
    for kind in (ROLE_BINDING, ROLE):
        for each in kube.list_all(kind, labels=f"{marks.MANAGED_BY}={marks.OURS}"):
            metadata = each["metadata"]
            kube.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    whole = kube.find(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY)
    if whole and is_ours(whole):
        kube.delete(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY, uid=whole["metadata"]["uid"])


def probe(kube: Kube, namespaces: tuple[str, ...], *, timeout: float) -> None:
    """As Argo CD's identity: the server answers, takes the token and grants the rights.

    namespaces: of a scoped identity, empty for admin. Raises KubeError.
    """
    namespace = namespaces[0] if namespaces else marks.IDENTITY_NAMESPACE
    kube.request("GET", SERVICE_ACCOUNT.path(namespace), query={"limit": "1"}, timeout=timeout)


def ensure(kube: Kube, item: Object) -> None:
    """Make an object of ours, or put it right; idempotent.

    Raises KubeError, or UcpError where something of the same name isn't ours.
    """
    try:
        kube.create(item)
        return
    except Conflict:
        pass
    kind = kube.kind_of(item["apiVersion"], item["kind"])
    metadata = item["metadata"]
    found = kube.get(kind, metadata["name"], metadata.get("namespace"))
    parts = {name: item[name] for name in ("roleRef", "subjects", "rules") if name in item}
    if all(found.get(name) == value for name, value in parts.items()):
        return
    if not is_ours(found):
        raise UcpError(
            f"{item['kind']} {metadata['name']} on the app cluster was made by somebody else",
            next=f"remove or rename {item['kind']} {metadata['name']} there",
        )
    if found.get("roleRef") != item.get("roleRef"):
        # A binding's role can't be changed.
        kube.delete(kind, metadata["name"], metadata.get("namespace"), uid=found["metadata"]["uid"])
        kube.create(item)
        return
    kube.patch(kind, metadata["name"], metadata.get("namespace"), parts)


def _withdraw(kube: Kube, source: Source) -> None:
    """Take back rights that another profile, or a longer list of namespaces, had given."""
    if not source.scoped:
        return
    whole = kube.find(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY)
    if whole and is_ours(whole):
        kube.delete(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY, uid=whole["metadata"]["uid"])
    for kind in (ROLE_BINDING, ROLE):
        for each in kube.list_all(kind, labels=f"{marks.MANAGED_BY}={marks.OURS}"):
            metadata = each["metadata"]
            listed = metadata["namespace"] in source.namespaces
            if metadata["name"] == marks.ARGOCD_IDENTITY and not listed:
                kube.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])


def is_ours(item: Object) -> bool:
    """It carries our mark."""
    return (item["metadata"].get("labels") or {}).get(marks.MANAGED_BY) == marks.OURS


def described(
    api_version: str, kind: str, name: str, namespace: str | None = None, **parts: Any
) -> Object:
    """An object with our mark, to be made."""
    metadata: Object = {"name": name, "labels": dict(_OURS)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _account(name: str) -> Object:
    # Tokens are asked for; nothing on the app cluster mounts them.
    return described(
        "v1",
        "ServiceAccount",
        name,
        marks.IDENTITY_NAMESPACE,
        automountServiceAccountToken=False,
    )


def _binding(kind: str, namespace: str | None, role_kind: str, role: str) -> Object:
    subject = {
        "kind": "ServiceAccount",
        "name": marks.ARGOCD_IDENTITY,
        "namespace": marks.IDENTITY_NAMESPACE,
    }
    return described(
        f"{_RBAC}/v1",
        kind,
        marks.ARGOCD_IDENTITY,
        namespace,
        roleRef={"apiGroup": _RBAC, "kind": role_kind, "name": role},
        subjects=[subject],
    )
