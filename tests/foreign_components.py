"""An Argo CD and a Crossplane of another owner, installed as their releases describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.manifests import Manifest, apply_all, read, wait_served
from k8s_ucp.components.pods import argocd_pods, workloads
from k8s_ucp.kube import APP_PROJECT, SECRET, Kube, Object
from tests.control_planes import namespace

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

PACKAGES = "pkg.crossplane.io/v1"
KINDS_OF_THEIRS = "boxes.things.example.org"


def settings(name: str, data: dict[str, str] | None = None) -> Object:
    """A ConfigMap of Argo CD, as its administrators configured it."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": argocd.NAMESPACE, "labels": labels},
        "data": data or {},
    }


def kinds(toolbox: Toolbox) -> list[Manifest]:
    """CRDs of both, which their installations need."""
    files = argocd.engine_manifests(toolbox.module(argocd.NAME))
    return [
        *read({"crds.yaml": files["crds.yaml"]}),
        *read(crossplane.engine_manifests(toolbox.module(crossplane.NAME))),
    ]


def install_kinds(kube: Kube, toolbox: Toolbox) -> None:
    """Install the CRDs on a cluster that was created without them."""
    found = kinds(toolbox)
    apply_all(kube, found)
    wait_served(kube, found)


def install_argocd(kube: Kube, toolbox: Toolbox) -> None:
    """Create settings, RBAC, workloads and the objects that its server creates when it starts.

    Requires its CRDs to be served.
    """
    module = toolbox.module(argocd.NAME)
    kube.create(namespace(argocd.NAMESPACE))
    files = argocd.engine_manifests(module)
    apply_all(kube, read({"config.yaml": files["config.yaml"]}))
    for name in ("argocd-cm", "argocd-cmd-params-cm", "argocd-rbac-cm"):
        kube.create(settings(name))
    argocd_pods.prepare(kube)
    kube.create(project("default"))
    apply_all(kube, read({"workloads.yaml": workloads.of_argocd(module)}))


def install_crossplane(kube: Kube) -> None:
    """Create its workload. Requires its CRDs to be served."""
    kube.create(namespace(crossplane.NAMESPACE))
    kube.create(crossplane_workload())


def crossplane_workload() -> Object:
    """A Deployment with the labels that Crossplane's chart sets."""
    selector = {"app": "crossplane", "release": "their-release"}
    labels = {
        **selector,
        "app.kubernetes.io/component": "cloud-infrastructure-controller",
        "app.kubernetes.io/part-of": "crossplane",
        "app.kubernetes.io/version": "2.3.1",
    }
    container = {
        "name": "crossplane",
        "image": f"registry.example.org/crossplane@sha256:{'2' * 64}",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crossplane", "namespace": "crossplane-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def project(name: str) -> Object:
    """An AppProject with all permissions, like the default project that Argo CD creates."""
    everything = [{"group": "*", "kind": "*"}]
    return {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": name, "namespace": argocd.NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": everything,
        },
    }


def application(name: str, url: str, path: str, to: str, project: str = "default") -> Object:
    """An Application of the other owner, synced automatically. to: its namespace (must exist)."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": argocd.NAMESPACE},
        "spec": {
            "project": project,
            "source": {"repoURL": url, "targetRevision": "main", "path": path},
            "destination": {"name": "in-cluster", "namespace": to},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
        },
    }


def install_package(kube: Kube) -> None:
    """Install a Crossplane package of the other owner, with its CRD and one resource."""
    provider = kube.create(_package("Provider", "their-provider"))
    revision = kube.create(_package("ProviderRevision", "their-provider-1", owner=provider))
    kube.create(_crd(revision))
    wait_served(
        kube,
        read(
            {
                "crd": b"kind: CustomResourceDefinition\napiVersion: x/v1\n"
                b"metadata:\n  name: " + KINDS_OF_THEIRS.encode() + b"\n"
            }
        ),
    )
    box = {"name": "kept", "namespace": "default", "finalizers": ["things.example.org/cloud"]}
    kube.create({"apiVersion": "things.example.org/v1", "kind": "Box", "metadata": box})


def registration(name: str, cluster: str, server: str, **more: Any) -> Object:
    """A cluster Secret of Argo CD."""
    labels = {"argocd.argoproj.io/secret-type": "cluster", **more.pop("labels", {})}
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {"name": name, "namespace": argocd.NAMESPACE, "labels": labels},
        "stringData": {"name": cluster, "server": server, **more},
    }


def _package(kind: str, name: str, owner: Object | None = None) -> Object:
    about: Object = {"name": name}
    spec: Object = {"package": "registry.example.org/things/their-provider:v1.0.0"}
    if owner:
        about["ownerReferences"] = [_reference(owner)]
        spec = {**spec, "image": spec["package"], "desiredState": "Active", "revision": 1}
        del spec["package"]
    return {"apiVersion": PACKAGES, "kind": kind, "metadata": about, "spec": spec}


def _reference(owner: Object) -> Object:
    about = owner["metadata"]
    return {
        "apiVersion": PACKAGES,
        "kind": owner["kind"],
        "name": about["name"],
        "uid": about["uid"],
    }


def _crd(revision: Object) -> Object:
    plural, _, group = KINDS_OF_THEIRS.partition(".")
    names = {"kind": "Box", "plural": plural, "singular": "box", "categories": ["managed"]}
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": KINDS_OF_THEIRS, "ownerReferences": [_reference(revision)]},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
