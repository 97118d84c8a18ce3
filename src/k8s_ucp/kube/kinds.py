"""Kinds that this project speaks of, and where their objects live in the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]
"""As the API server writes it in JSON."""


@dataclass(frozen=True)
class Kind:
    """Where objects of one kind live in the API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Of the API; empty for the core's."""
        return self.api_version.rpartition("/")[0]

    def object(self, name: str, namespace: str | None = None, **parts: Any) -> Object:
        """One of them, to be written. parts: `labels` and `annotations` go into its metadata."""
        metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
        for each in ("labels", "annotations", "ownerReferences"):
            if each in parts:
                metadata[each] = parts.pop(each)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **parts}

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """URL path of the collection, or of one object when a name is given."""
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        scope = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        tail = f"/{quote(name, safe='')}" if name else ""
        return f"{root}{scope}/{self.plural}{tail}"


NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SERVICE = Kind("v1", "Service", "services")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
EVENT = Kind("v1", "Event", "events")
PERSISTENT_VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
CRD = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
APPLICATION = Kind("argoproj.io/v1alpha1", "Application", "applications")
APPLICATION_SET = Kind("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets")
APP_PROJECT = Kind("argoproj.io/v1alpha1", "AppProject", "appprojects")
LOCAL_CLUSTER = Kind("k8s-ucp.io/v1alpha1", "LocalCluster", "localclusters")
SYNCER = Kind("k8s-ucp.io/v1alpha1", "Syncer", "syncers")

KNOWN = {
    (each.api_version, each.kind): each
    for each in (
        NAMESPACE,
        SECRET,
        CONFIG_MAP,
        SERVICE_ACCOUNT,
        SERVICE,
        NODE,
        DEPLOYMENT,
        LEASE,
        EVENT,
        PERSISTENT_VOLUME,
        ROLE,
        ROLE_BINDING,
        CLUSTER_ROLE_BINDING,
        CRD,
        APPLICATION,
        APPLICATION_SET,
        APP_PROJECT,
        LOCAL_CLUSTER,
        SYNCER,
    )
}
