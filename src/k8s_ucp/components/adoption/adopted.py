"""Finds and inspects adopted components; never changes them.

They are found by the labels that releases, charts and operators set, since names differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.component import Check, Health, PlacementName
from k8s_ucp.components.pods.component import STATEFUL_SET, PodComponent, Workload
from k8s_ucp.gitops.manifests.images_and_ports import split_image
from k8s_ucp.kube import DEPLOYMENT, Kube, KubeError, Object, labels_of

_COMPONENT = "app.kubernetes.io/component"
_PART_OF = "app.kubernetes.io/part-of"
_VERSION = "app.kubernetes.io/version"
SERVER = "server"
CONTROLLER = "application-controller"


@dataclass(frozen=True)
class Traits:
    """How to recognize a component."""

    title: str
    namespace: str
    parts: Mapping[str, str]
    """The workloads that it needs: component label -> name. The first one has its version."""


TRAITS = {
    argocd.NAME: Traits(
        "Argo CD",
        argocd.NAMESPACE,
        {
            CONTROLLER: argocd.CONTROLLER,
            "repo-server": argocd.REPO_SERVER,
            "applicationset-controller": argocd.APPLICATION_SETS,
            SERVER: argocd.SERVER,
        },
    ),
    crossplane.NAME: Traits(
        "Crossplane",
        crossplane.NAMESPACE,
        {"cloud-infrastructure-controller": crossplane.NAME},
    ),
}


@dataclass(frozen=True)
class Installation:
    """The workloads of a component in all namespaces."""

    name: str
    items: Sequence[Object]

    @property
    def namespaces(self) -> list[str]:
        return sorted({str(each["metadata"]["namespace"]) for each in self.items})

    @property
    def parts(self) -> dict[str, Object]:
        """Label -> workload, of the required ones that exist in the component's namespace."""
        traits = TRAITS[self.name]
        inside = [each for each in self.items if each["metadata"]["namespace"] == traits.namespace]
        by_label = {label_of(each): each for each in reversed(inside)}
        return {part: by_label[part] for part in traits.parts if part in by_label}

    @property
    def missing(self) -> list[str]:
        """Names of the required workloads that do not exist."""
        parts = self.parts
        return [name for part, name in TRAITS[self.name].parts.items() if part not in parts]

    @property
    def version(self) -> str:
        """The installed version, such as v3.5.7; empty if neither image nor label has it."""
        first = self.parts.get(next(iter(TRAITS[self.name].parts)))
        if first is None:
            return ""
        containers = first["spec"]["template"]["spec"]["containers"]
        tag = split_image(str(containers[0]["image"]))[1].partition("@")[0]
        labels = labels_of(first)
        version = tag or str(labels.get(_VERSION, ""))
        return f"v{version.removeprefix('v')}" if version[:1] in (*"0123456789v",) else ""

    @property
    def workloads(self) -> list[Workload]:
        return [
            Workload(each["kind"], each["metadata"]["name"], each["metadata"]["namespace"])
            for each in self.parts.values()
        ]


def find_component(kube: Kube, name: str) -> Installation:
    """Find a component's workloads in all namespaces. Raises KubeError."""
    labels = f"{_PART_OF}={name},{_COMPONENT} in ({','.join(TRAITS[name].parts)})"
    kinds = (STATEFUL_SET, DEPLOYMENT)
    return Installation(
        name, [each for kind in kinds for each in kube.list_all(kind, labels=labels)]
    )


def label_of(item: Object) -> str:
    """Which part of its component a workload is."""
    return labels_of(item).get(_COMPONENT, "")


@dataclass(frozen=True)
class AdoptedComponent:
    """Implements Component. beside: health of what ucp adds on this machine, if anything."""

    name: str
    kube: Kube
    beside: Check | None = None
    placement: PlacementName = "pods"

    def found(self) -> Installation:
        return find_component(self.kube, self.name)

    def rolled_out(self) -> Health:
        """Whether its pods are up to date with their declaration, and ready."""
        return self._health(None)

    def ready(self) -> Health:
        return self._health(self.beside)

    def version(self) -> str:
        """Its version; empty if unknown."""
        try:
            return self.found().version
        except KubeError:
            return ""

    def _health(self, beside: Check | None) -> Health:
        try:
            found = self.found()
        except KubeError as error:
            return Health(False, error.message)
        if found.missing:
            return Health(False, f"missing: {', '.join(found.missing)}")
        return PodComponent(self.name, self.kube, found.workloads, beside).ready()
