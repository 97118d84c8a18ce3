"""Finds ucp's objects on an existing core cluster, apart from those of others. Reads only.

Ours is what the ledger names, what Argo CD keeps for our Applications, what these own, and what
lies in namespaces of ours without being a person's. None of it is older than our mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from k8s_ucp.components.ownership.generated_kinds import GeneratedKinds, kind_of_crd
from k8s_ucp.components.ownership.ledger import WORKERS, LedgerEntry, find_all
from k8s_ucp.components.ownership.tracking import is_on_core, tracker
from k8s_ucp.kube import (
    APP_PROJECT,
    APPLICATION,
    CRD,
    FIELD_MANAGER,
    NAMESPACE,
    SECRET,
    Kind,
    Kube,
    NotFound,
    Object,
)
from k8s_ucp.names import ARGOCD_NAMESPACE, KUBECONFIG_LABEL, SECRET_TYPE, TOPOLOGY

_PASSING = ("Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision")
"""Kinds that come and go by themselves, or follow another object: nobody misses one."""
_IN_EVERY_NAMESPACE = {
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ResourceQuota", "gke-resource-quotas"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "default"),
    ("ServiceAccount", "deployer"),
}
"""Made by the cluster itself."""
_SYSTEM = frozenset(
    ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager")
)
"""As whom the cluster writes."""
_MISSED = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "PersistentVolumeClaim")
"""Ours of these kinds are written down, kept by an Application, or owned, without exception."""
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 (a type of Secrets)
_BY_PEOPLE = ("Application", "ApplicationSet")
"""Written into Argo CD's namespace by whoever uses it."""
_MADE_BY_CROSSPLANE = {
    ("Lock", "lock"),
    ("DeploymentRuntimeConfig", "default"),
    ("ManagedResourceActivationPolicy", "default"),
}


@dataclass(frozen=True)
class Inventory:
    """entries: of the ledger. since: when the cluster was marked. topology: its name."""

    kube: Kube
    entries: frozenset[LedgerEntry]
    since: str
    topology: str

    @cached_property
    def namespaces(self) -> list[Object]:
        """Those that go whole."""
        entries = (each for each in self.entries if each.kind == NAMESPACE.kind)
        return [each for each in find_all(self.kube, entries) if self.is_young(each)]

    @cached_property
    def applications(self) -> list[Object]:
        """Of Argo CD, ours: applied by hand, kept by one of these, or made by our sets."""
        try:
            items = self.kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        except NotFound:
            return []
        by_name = {each["metadata"]["name"]: each for each in items}
        ours = {name for name, each in by_name.items() if self._is_named(each)}
        while more := {
            name
            for name, each in by_name.items()
            if name not in ours and tracker(each) in ours and self.is_young(each)
        }:
            ours |= more
        return [each for name, each in by_name.items() if name in ours]

    @cached_property
    def tracked(self) -> list[Object]:
        """What Argo CD keeps on the core cluster for our Applications, whoever made it."""
        names = _names(self.applications)
        wanted = {
            LedgerEntry(
                "/".join(part for part in (each.get("group"), each["version"]) if part),
                each["kind"],
                each.get("namespace", ""),
                each["name"],
            )
            for application in self.applications
            if is_on_core(application)
            for each in (application.get("status") or {}).get("resources") or []
        }
        return [each for each in find_all(self.kube, wanted) if tracker(each) in names]

    @cached_property
    def created(self) -> list[Object]:
        """What Argo CD made of it. Namespaces are ours by the ledger alone: others move in, too."""
        return [
            each for each in self.tracked if self.is_young(each) and each["kind"] != NAMESPACE.kind
        ]

    @cached_property
    def shared(self) -> list[Object]:
        """Namespaces of others that Argo CD keeps annotations on."""
        ours = _names(self.namespaces)
        return [
            each
            for each in self.tracked
            if each["kind"] == NAMESPACE.kind and each["metadata"]["name"] not in ours
        ]

    @cached_property
    def applied(self) -> list[Object]:
        """What the ledger names and is there."""
        return [each for each in find_all(self.kube, self.entries) if self.is_young(each)]

    @cached_property
    def cluster_secrets(self) -> list[Object]:
        """App clusters as Argo CD knows them, by the reconciler."""
        return self.kube.list_all(SECRET, ARGOCD_NAMESPACE, labels=f"{TOPOLOGY}={self.topology}")

    @cached_property
    def kinds(self) -> list[Object]:
        """CRDs that go, with all objects of theirs."""
        ours = [*self.applied, *self.created]
        own = {each["metadata"]["name"] for each in ours if each["kind"] == CRD.kind}
        generated = GeneratedKinds(
            self.kube, self.entries, {each["metadata"]["uid"] for each in ours}
        )
        return [
            each
            for each in self.kube.list_all(CRD)
            if each["metadata"]["name"] in own or generated.go(each)
        ]

    @property
    def argocd_stays(self) -> bool:
        """It is somebody else's, and works on whatever we take away."""
        return ARGOCD_NAMESPACE not in _names(self.namespaces)

    def instances(self) -> Iterator[tuple[Kind, Object]]:
        """All objects of those kinds."""
        kinds = [kind for each in self.kinds if (kind := kind_of_crd(each))]
        with ThreadPoolExecutor(WORKERS, "instances") as pool:
            for kind, items in zip(kinds, pool.map(self._list, kinds), strict=True):
                for item in items:
                    yield kind, item

    def foreign(self) -> list[str]:
        """What others made and would go with our kinds and namespaces, in words."""
        found = [
            f"{kind.kind} {_place(item)}"
            for kind, item in self.instances()
            if not self._is_explained(item)
        ]
        found += self._leaning()
        for items in self._inside().values():
            sets = [each["metadata"]["name"] for each in items if each["kind"] == "StatefulSet"]
            writers = self._writers(items)
            found += [
                f"{item['kind']} {_place(item)}"
                for item in items
                if not self._is_explained(item, inside=False)
                and not _is_volume_of(item, sets)
                and not self._is_made_by(item, writers)
            ]
        return sorted(set(found))

    def made_inside(self) -> list[Object]:
        """What lies in our namespaces and only its writers explain, who leave before it."""
        return [
            item
            for items in self._inside().values()
            for writers in (self._writers(items),)
            for item in items
            if not self._is_explained(item, inside=False)
            and (item["kind"], item["metadata"]["name"]) not in _IN_EVERY_NAMESPACE
            and self._is_made_by(item, writers)
        ]

    def _inside(self) -> dict[str, list[Object]]:
        """All that lies in our namespaces, but for objects of kinds that are ours."""
        names = _names(self.namespaces)
        if not names:
            return {}
        ours = {
            (kind.group, kind.kind)
            for each in self.kinds
            if (kind := kind_of_crd(each)) is not None
        }
        kinds = [
            each
            for each in self.kube.namespaced_kinds()
            if (each.group, each.kind) not in ours and each.kind not in _PASSING
        ]
        places = [(name, kind) for name in names for kind in kinds]
        with ThreadPoolExecutor(WORKERS, "inside") as pool:
            listed = list(pool.map(lambda each: self._list(each[1], each[0]), places))
        found: dict[str, list[Object]] = {name: [] for name in names}
        for (name, _), items in zip(places, listed, strict=True):
            # What has no identity is made up by its server at every look, as metrics are.
            found[name] += [each for each in items if each["metadata"].get("uid")]
        return found

    def _writers(self, items: Iterable[Object]) -> frozenset[str]:
        """As whom our workloads among these may write: the name of a program, as a rule."""
        names: set[str] = set()
        for each in items:
            template = (each.get("spec") or {}).get("template")
            if not isinstance(template, dict) or not self._is_explained(each, inside=False):
                continue
            names.add(str(each["metadata"]["name"]))
            spec = template.get("spec") or {}
            for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
                names.add(str(container["name"]))
                names.add(_program(str(container.get("image", "")).partition("@")[0]))
                names.update(_program(word) for word in (container.get("command") or ())[:1])
        return frozenset(names - {""})

    def _is_made_by(self, item: Object, writers: frozenset[str]) -> bool:
        """By the cluster, by us, or by one of these alone: no person had a hand in it."""
        about = item["metadata"]
        labels = about.get("labels") or {}
        if item["kind"] in _MISSED:
            return False
        if item["kind"] == SECRET.kind and SECRET_TYPE in labels:
            # A cluster or a repository in Argo CD, which people add through its server.
            return labels.get(TOPOLOGY) == self.topology
        if (
            (item["kind"], about["name"]) in _IN_EVERY_NAMESPACE
            or item.get("type") == _TOKEN
            or (item["kind"] == "RoleBinding" and about["name"].startswith("system:"))
            # A kubeconfig that a person vouched for: the backup holds it.
            or (item["kind"] == SECRET.kind and KUBECONFIG_LABEL in labels)
        ):
            return True
        managers = {
            str(each.get("manager", ""))
            for each in about.get("managedFields") or []
            if not each.get("subresource")
        }
        return bool(managers) and all(
            each in writers or each in _SYSTEM or each.startswith(FIELD_MANAGER)
            for each in managers
        )

    def _leaning(self) -> list[str]:
        """Applications of others in projects of ours, where Argo CD stays: they would break."""
        if not self.argocd_stays:
            return []
        projects = {
            each["metadata"]["name"] for each in self.applied if each["kind"] == APP_PROJECT.kind
        }
        ours = _names(self.applications)
        return [
            f"Application {name} (in our project {each['spec']['project']})"
            for each in self._list(APPLICATION)
            if each["spec"].get("project") in projects
            and (name := each["metadata"]["name"]) not in ours
        ]

    def is_made(self, item: Object) -> bool:
        """We, or Argo CD for us, made it after we came, whatever the ledger knows."""
        names = _names(self.applications)
        return self.is_young(item) and (_is_by_us(item) or tracker(item) in names)

    def is_young(self, item: Object) -> bool:
        """Made after we came."""
        return str(item["metadata"]["creationTimestamp"]) >= self.since

    def _is_explained(self, item: Object, *, inside: bool = True) -> bool:
        """Ours, or made by what is ours. inside: being in a namespace of ours says enough."""
        about = item["metadata"]
        inner = _names(self.namespaces)
        return (
            _versionless(LedgerEntry.of(item)) in self._noted
            or tracker(item) in _names(self.applications)
            or bool(about.get("ownerReferences"))
            or (item["kind"], about["name"]) in _MADE_BY_CROSSPLANE
            or (inside and about.get("namespace") in inner and item["kind"] not in _BY_PEOPLE)
        )

    @cached_property
    def _noted(self) -> frozenset[tuple[str, str, str, str]]:
        """The ledger's entries, in whichever version they were written down."""
        return frozenset(map(_versionless, self.entries))

    def _is_named(self, application: Object) -> bool:
        labels = application["metadata"].get("labels") or {}
        applied = self.is_young(application) and _is_by_us(application, "Apply")
        named = LedgerEntry.of(application) in self.entries or applied
        return named or labels.get(TOPOLOGY) == self.topology

    def _list(self, kind: Kind, namespace: str | None = None) -> Sequence[Object]:
        try:
            return self.kube.list_all(kind, namespace)
        except NotFound:
            return ()


def _names(items: Iterable[Object]) -> set[str]:
    return {each["metadata"]["name"] for each in items}


def _versionless(entry: LedgerEntry) -> tuple[str, str, str, str]:
    return entry.api_version.rpartition("/")[0], entry.kind, entry.namespace, entry.name


def _is_volume_of(item: Object, sets: Iterable[str]) -> bool:
    """A claim that a StatefulSet made: `<template>-<set>-<number>`."""
    stem = str(item["metadata"]["name"]).rpartition("-")[0]
    return item["kind"] == "PersistentVolumeClaim" and stem.endswith(tuple(f"-{s}" for s in sets))


def _is_by_us(item: Object, operation: str | None = None) -> bool:
    """operation: Apply where a note of ours on it says nothing."""
    return any(
        str(each.get("manager", "")).startswith(FIELD_MANAGER)
        and operation in (None, each.get("operation"))
        for each in item["metadata"].get("managedFields") or []
    )


def _program(path: str) -> str:
    """The last part of a command or an image, without a tag."""
    return path.rpartition("/")[2].partition(":")[0]


def _place(item: Object) -> str:
    about = item["metadata"]
    return "/".join(part for part in (about.get("namespace"), about["name"]) if part)
