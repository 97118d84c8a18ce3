"""Kinds that this project uses, and the API paths of their objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]
"""An object in the JSON form of the API."""


@dataclass(frozen=True)
class Kind:
    """A kind with its resource name and scope in the API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def object(self, name: str, namespace: str | None = None, **parts: Any) -> Object:
        """A new object. parts: its keys; labels, annotations and owners go to the metadata."""
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


def labels_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """An object's labels; empty if it has none."""
    return item["metadata"].get("labels") or {}


def annotations_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """An object's annotations; empty if it has none."""
    return item["metadata"].get("annotations") or {}


def mapping_in(item: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at a path of keys; empty if there is none, whatever is there instead."""
    found: Any = item
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def mappings_in(item: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """The mappings of the list at a path of keys; empty if there is none."""
    *above, last = path
    found = mapping_in(item, *above).get(last)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def conditions_of(item: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The conditions of an object's status; empty if it has none."""
    return mappings_in(item, "status", "conditions")


def namespaced_name(item: Mapping[str, Any]) -> str:
    """`namespace/name`, or `name` for a cluster-scoped object."""
    namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def controller_reference(item: Object) -> Object:
    """An entry for metadata.ownerReferences of objects that are deleted with this one."""
    metadata = item["metadata"]
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


KNOWN: dict[tuple[str, str], Kind] = {}
"""The kinds below by API version and kind, which need no discovery request."""


def _known(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Kind:
    return KNOWN.setdefault((api_version, kind), Kind(api_version, kind, plural, namespaced))


NAMESPACE = _known("v1", "Namespace", "namespaces", namespaced=False)
SECRET = _known("v1", "Secret", "secrets")
CONFIG_MAP = _known("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = _known("v1", "ServiceAccount", "serviceaccounts")
SERVICE = _known("v1", "Service", "services")
NODE = _known("v1", "Node", "nodes", namespaced=False)
DEPLOYMENT = _known("apps/v1", "Deployment", "deployments")
LEASE = _known("coordination.k8s.io/v1", "Lease", "leases")
EVENT = _known("v1", "Event", "events")
PERSISTENT_VOLUME = _known("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ROLE = _known("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = _known("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING = _known(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
CRD = _known(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
APPLICATION = _known("argoproj.io/v1alpha1", "Application", "applications")
APPLICATION_SET = _known("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets")
APP_PROJECT = _known("argoproj.io/v1alpha1", "AppProject", "appprojects")
FUNCTION_REVISION = _known(
    "pkg.crossplane.io/v1", "FunctionRevision", "functionrevisions", namespaced=False
)
LOCAL_CLUSTER = _known("k8s-ucp.io/v1alpha1", "LocalCluster", "localclusters")
SYNCER = _known("k8s-ucp.io/v1alpha1", "Syncer", "syncers")
