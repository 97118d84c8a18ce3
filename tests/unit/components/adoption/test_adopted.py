"""Adopted components: how they are found, and which of their settings conflict with ucp."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.components.adoption.adopted import Installation
from k8s_ucp.components.adoption.adopted_argocd import (
    lacking,
    of_ours,
    sets_for_all_clusters,
    unfit,
    untracked,
)
from k8s_ucp.components.ownership.generated_kinds import MAKER, GeneratedKinds
from k8s_ucp.components.ownership.ledger import LedgerEntry
from k8s_ucp.kube import NotFound, Object
from k8s_ucp.preflight.adoption import unserved
from k8s_ucp.preflight.collisions import package_in, package_of

PARTS = ("application-controller", "repo-server", "applicationset-controller", "server")
WHOLE = {
    f"resource.customizations.health.{each}": ""
    for each in ("argoproj.io_Application", "k8s-ucp.io_LocalCluster", "k8s-ucp.io_Syncer")
}


def workload(part: str, namespace: str = "argocd", image: str = "q.io/argocd:v3.4.1") -> Object:
    labels = {"app.kubernetes.io/component": part, "app.kubernetes.io/part-of": "argocd"}
    pods = {"spec": {"containers": [{"image": image}]}}
    return {
        "kind": "Deployment",
        "metadata": {"name": f"my-{part}", "namespace": namespace, "labels": labels},
        "spec": {"template": pods},
    }


def test_workloads_are_found_by_labels_regardless_of_their_names() -> None:
    found = Installation("argocd", [*map(workload, PARTS), workload("server", "elsewhere")])
    assert found.missing == []
    assert [each.name for each in found.workloads] == [f"my-{each}" for each in PARTS]
    assert found.namespaces == ["argocd", "elsewhere"]
    assert Installation("argocd", []).missing[0] == "argocd-application-controller"
    half = Installation("argocd", [workload("server"), workload("repo-server", "elsewhere")])
    assert "argocd-repo-server" in half.missing


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("quay.io/argoproj/argocd:v3.4.1", "v3.4.1"),
        ("registry:5000/argocd:3.4.1", "v3.4.1"),
        ("registry:5000/argocd", "v3.0.0"),
        (f"quay.io/argoproj/argocd@sha256:{'1' * 64}", "v3.0.0"),
        ("quay.io/argoproj/argocd:latest", ""),
    ],
)
def test_the_version_is_read_from_the_image_tag_or_the_label(image: str, version: str) -> None:
    item = workload(PARTS[0], image=image)
    item["metadata"]["labels"]["app.kubernetes.io/version"] = "v3.0.0"
    assert Installation("argocd", [item]).version == version
    assert Installation("argocd", []).version == ""


def keys(settings: dict[str, str], parameters: dict[str, str], **more: Any) -> list[str]:
    wanted = {"version": "v3.5.7", "protects": False, **more}
    return [key for each in unfit(settings, parameters, **wanted) for key in each.setting]


def test_conflicting_settings_of_an_adopted_argo_cd_are_found() -> None:
    policy = "applicationsetcontroller.policy"
    override = "applicationsetcontroller.enable.policy.override"
    assert keys({}, {}) == []
    assert keys({"cluster.inClusterEnabled": "false"}, {}) == ["cluster.inClusterEnabled"]
    assert keys({}, {policy: "create-only"}) == [override]
    assert keys({}, {policy: "sync"}) == []
    assert keys({}, {policy: "sync"}, protects=True) == [override]
    assert keys({}, {policy: "sync", override: "true"}, protects=True) == []
    (found,) = unfit({}, {policy: "create-only"}, "v3.5.7", protects=False)
    assert found.command("kubectl").endswith("(and restart its workloads)")


@pytest.mark.parametrize(
    ("method", "version", "told"),
    [
        ("", "v3.5.7", False),
        ("", "", False),
        ("", "v2.14.3", True),
        ("label", "v3.5.7", True),
        ("annotation", "v2.14.3", False),
        ("annotation+label", "v3.5.7", False),
    ],
)
def test_label_tracking_of_resources_is_reported(method: str, version: str, told: bool) -> None:
    settings = {"application.resourceTrackingMethod": method} if method else {}
    assert bool(list(untracked(settings, version))) is told


def test_missing_settings_of_an_adopted_argo_cd_are_reported() -> None:
    assert lacking({**WHOLE, "timeout.reconciliation": "30s"}, "30s") == []
    health, poll = lacking({}, "30s")
    assert "has no health checks for Application, LocalCluster, Syncer" in health
    assert "every 120s, regardless of spec.git.poll (30s)" in poll


def test_foreign_applications_are_ignored_if_argo_cd_is_adopted() -> None:
    ours = {"spec": {"project": "infrastructure"}}
    made = {"spec": {"template": {"spec": {"project": "applications"}}}}
    theirs: Object = {"spec": {"project": "default"}}
    assert of_ours([ours, made, theirs], ["argocd"]) == [ours, made]
    assert of_ours([ours, made, theirs], ["crossplane"]) == [ours, made, theirs]


def test_kinds_not_served_in_our_version_are_reported() -> None:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": False}]
    crd = {"metadata": {"name": "a.b"}, "spec": {"versions": versions}}
    assert list(unserved({"a.b": "v1"}, [crd])) == []
    assert list(unserved({"a.b": "v2", "c.d": "v1"}, [crd])) == ["a.b v2", "c.d v1"]


@pytest.mark.parametrize(
    ("reference", "package"),
    [
        ("xpkg.crossplane.io/contrib/provider-x:v1.0", "provider-x"),
        ("mirror:5000/provider-x", "provider-x"),
        (f"mirror:5000/a/provider-x@sha256:{'1' * 64}", "provider-x"),
    ],
)
def test_a_package_name_does_not_depend_on_the_registry(reference: str, package: str) -> None:
    assert package_of(reference) == package
    assert package_in(f'spec:\n  package: "{reference}"\n') == package


class Revisions:
    """Package revisions by name, which can only be read."""

    def __init__(self, **owners: str) -> None:
        self.owners = owners

    def kind_of(self, api_version: str, kind: str) -> str:
        return kind

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        if name not in self.owners:
            raise NotFound(name)
        return {"metadata": {"ownerReferences": [{"uid": self.owners[name]}]}}


def made_for(kind: str, name: str) -> Object:
    owner = {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": f"uid-of-{name}"}
    return {"metadata": {"name": "k", "ownerReferences": [owner]}}


def test_with_an_adopted_crossplane_only_the_kinds_of_our_packages_are_deleted() -> None:
    kube: Any = Revisions(ours="uid-of-package", theirs="uid-of-another")
    crds = [
        made_for("ProviderRevision", "ours"),
        made_for("ProviderRevision", "theirs"),
        made_for("ProviderRevision", "gone"),
        made_for("CompositeResourceDefinition", "definition"),
        made_for("Deployment", "ours"),
        {"metadata": {"name": "plain"}},
    ]
    uids = {"uid-of-package", "uid-of-definition"}
    entries = {LedgerEntry("v1", "Namespace", "", "ucp-clusters")}
    theirs = GeneratedKinds(kube, entries, uids)
    assert [theirs.go(each) for each in crds] == [True, False, False, True, False, False]
    ours = GeneratedKinds(kube, {*entries, MAKER}, uids)
    assert [ours.go(each) for each in crds] == [True, True, True, True, False, False]


def test_foreign_application_sets_that_select_all_clusters_are_found() -> None:
    """They would select ucp's clusters too, which are registered with the same Argo CD."""

    def named(name: str, *generators: dict[str, Any], project: str = "theirs") -> dict[str, Any]:
        template = {"spec": {"project": project}}
        return {
            "metadata": {"name": name},
            "spec": {"generators": list(generators), "template": template},
        }

    everything: dict[str, Any] = {"clusters": {}}
    some: dict[str, Any] = {"clusters": {"selector": {"matchLabels": {"team": "a"}}}}
    found = sets_for_all_clusters(
        [
            named("b", everything),
            named("a", {"matrix": {"generators": [{"git": {}}, {"clusters": {"selector": {}}}]}}),
            named("some", some),
            named("ours", everything, project="infrastructure"),
            named("lists", {"list": {"elements": []}}),
        ]
    )
    assert found == ["a", "b"]
