"""What the AppProject of an app would reject. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.item import Object, name_of, of_object
from k8s_ucp.gitops.manifests.yaml_text import part
from k8s_ucp.gitops.render.values.permissions import namespaces_of, taken_namespaces
from k8s_ucp.names import DNS_LABEL
from k8s_ucp.topology import Topology

CLUSTER_SCOPED = frozenset(
    [
        *("Namespace", "Node", "PersistentVolume", "ComponentStatus", "APIService"),
        *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"),
        *("StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"),
        *(
            "VolumeSnapshotClass",
            "VolumeSnapshotContent",
            "StorageVersion",
            "StorageVersionMigration",
        ),
        *("IngressClass", "GatewayClass", "IPAddress", "ServiceCIDR"),
        *("PriorityClass", "RuntimeClass", "DeviceClass", "ResourceSlice", "DeviceTaintRule"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
        *("FlowSchema", "PriorityLevelConfiguration", "CertificateSigningRequest"),
        *("ClusterTrustBundle", "ClusterIssuer", "ClusterPolicy", "ClusterSecretStore"),
        *("ClusterExternalSecret", "ClusterAnalysisTemplate", "ClusterRepo"),
    ]
)
"""Cluster-scoped kinds: those of Kubernetes, and well-known custom resources."""


@dataclass(frozen=True)
class Permission:
    """What an app may create. namespaces: the app's own one first."""

    app: str
    namespaces: tuple[str, ...]
    kinds: frozenset[str] = frozenset()
    declared: bool = True
    """ucp.yaml declares the app. Other apps may write to every namespace except `others`."""
    others: frozenset[str] = frozenset()
    from_outside: frozenset[str] = frozenset()
    """Objects in its namespace that something else creates, as `Kind/name`."""

    @property
    def home(self) -> str:
        return self.namespaces[0]


class Permissions:
    """Permissions of all apps, by name. topology: None if it isn't available: no faults then."""

    def __init__(self, topology: Topology | None) -> None:
        apps = topology.spec.apps if topology else ()
        self._known = {
            each.name: Permission(
                each.name,
                namespaces_of(each),
                frozenset(each.cluster_kinds),
                from_outside=frozenset(each.from_outside),
            )
            for each in apps
        }
        self._taken = frozenset(taken_namespaces(topology)) if topology else frozenset()
        self._judged = topology is not None

    def of(self, app: str) -> Permission:
        known = self._known.get(app)
        return known or Permission(app, (app,), declared=False, others=self._taken - {app})

    def faults(self, app: str, objects: Sequence[Object]) -> Iterator[Fault]:
        """The objects that the app's AppProject would reject."""
        if self._judged:
            yield from find_refused(objects, self.of(app))


@dataclass(frozen=True)
class Needed:
    """Permissions that objects need beyond their app's own namespace."""

    kinds: tuple[str, ...]
    namespaces: tuple[str, ...]
    alone: bool = False
    """All objects are in a single other namespace, which could be the app's namespace instead."""


def needed(objects: Sequence[Object], home: str) -> Needed:
    """The permissions that an app needs for its objects."""
    kinds: set[str] = set()
    namespaces: set[str] = set()
    at_home = False
    scopes = defined_scopes(objects)
    for item in objects:
        if item.get("kind") == "Namespace":
            namespaces.add(name_of(item))
        elif is_cluster_scoped(item, scopes):
            kinds.add(str(item.get("kind")))
        else:
            namespace = _namespace(item)
            namespaces |= {namespace} if namespace else set()
            at_home |= namespace in (None, home)
    # Nothing can permit an invalid one, such as ${NAMESPACE}; it is a fault of its own.
    other = tuple(sorted(filter(DNS_LABEL.fullmatch, namespaces - {home})))
    return Needed(tuple(sorted(kinds)), other, len(other) == 1 and not at_home)


def find_refused(objects: Sequence[Object], permission: Permission) -> Iterator[Fault]:
    """The objects that the permission doesn't cover, as faults for `ucp check`."""
    scopes = defined_scopes(objects)
    for item in objects:
        if fault := _refused(item, permission, scopes):
            yield of_object(item, fault)


def _refused(
    item: Object, permission: Permission, scopes: Mapping[tuple[str, str], str]
) -> Fault | None:
    kind, name = str(item.get("kind")), name_of(item)
    if kind == "Namespace":
        return _elsewhere(permission, f"Namespace {name}", name)
    if is_cluster_scoped(item, scopes):
        group = str(item.get("apiVersion")).rpartition("/")[0]
        if {kind, f"{kind}.{group}"} & permission.kinds:
            return None
        way = "only apps of ucp.yaml can be allowed to, by clusterKinds"
        if permission.declared:
            way = f"allow it by clusterKinds: [{kind}] of the app in ucp.yaml"
        message = (
            f"{kind} {name} is cluster-scoped, and the app {permission.app} may not create its "
            f"kind: {way}"
        )
        return Fault("cluster-kind-not-allowed", message, field="kind")
    namespace = _namespace(item)
    return _elsewhere(permission, f"{kind} {name}", namespace) if namespace else None


def _elsewhere(permission: Permission, what: str, namespace: str) -> Fault | None:
    field = "metadata.namespace"
    if permission.declared and namespace not in permission.namespaces:
        message = (
            f"{what} is in the namespace {namespace}, but the app {permission.app} may write to "
            f"{', '.join(permission.namespaces)} only: allow it by namespaces: [{namespace}] of "
            f"the app in ucp.yaml, or set its namespace: {namespace}"
        )
        return Fault("namespace-not-allowed", message, field=field)
    if namespace in permission.others:
        message = f"{what} is in the namespace {namespace}, which belongs to another app"
        return Fault("namespace-taken", message, field=field)
    return None


def is_cluster_scoped(item: Object, scopes: Mapping[tuple[str, str], str]) -> bool:
    """The object is cluster-scoped, as far as that is known here.

    scopes: of the kinds that CustomResourceDefinitions among the objects define.
    """
    kind = str(item.get("kind"))
    group = str(item.get("apiVersion")).rpartition("/")[0]
    scope = scopes.get((group, kind))
    return scope == "Cluster" if scope else kind in CLUSTER_SCOPED


def defined_scopes(objects: Iterable[Object]) -> dict[tuple[str, str], str]:
    """{(group, kind): scope} from CustomResourceDefinitions."""
    found = {}
    for item in objects:
        spec = part(item, "spec")
        if item.get("kind") == "CustomResourceDefinition" and spec:
            kind = part(spec, "names").get("kind")
            found[str(spec.get("group")), str(kind)] = str(spec.get("scope"))
    return found


def _namespace(item: Object) -> str | None:
    found = part(item, "metadata").get("namespace")
    return str(found) if found else None
