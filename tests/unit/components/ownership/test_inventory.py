"""Which objects count as ours on a core cluster that ucp did not create."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from k8s_ucp.components.ownership.generated_kinds import MAKER, kind_of_crd
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.components.ownership.ledger import Ledger, LedgerEntry
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import CRD, Kind, Kube, NotFound, Object
from k8s_ucp.steps.shutdown.remove_from_core import webhook_namespaces

MARKED = "2026-03-01T12:00:00Z"
BEFORE, AFTER = "2026-03-01T11:59:59Z", "2026-03-01T12:00:00Z"


class Cluster:
    """Objects in memory, which can only be read."""

    def __init__(self, *items: Object) -> None:
        self.items = items

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s")

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        for each in self.list_all(kind, namespace):
            if each["metadata"]["name"] == name:
                return each
        raise NotFound(name)

    def namespaced_kinds(self) -> list[Kind]:
        inside = {(each["apiVersion"], each["kind"]) for each in self.items if _is_inside(each)}
        return [self.kind_of(*each) for each in sorted(inside)]

    def list_all(self, kind: Kind, namespace: str | None = None, **_: Any) -> list[Object]:
        found = [each for each in self.items if each["kind"] == kind.kind]
        return [each for each in found if namespace in (None, each["metadata"].get("namespace"))]


def _is_inside(item: Object) -> bool:
    return "namespace" in item["metadata"]


def item(
    kind: str, name: str, namespace: str = "", *, made: str = AFTER, api: str = "v1", **more: Any
) -> Object:
    about: dict[str, Any] = {"name": name, "uid": name, "creationTimestamp": made}
    if namespace:
        about["namespace"] = namespace
    for key in ("annotations", "labels", "ownerReferences", "managedFields"):
        if key in more:
            about[key] = more.pop(key)
    return {"apiVersion": api, "kind": kind, "metadata": about, **more}


def kept_by(application: str) -> dict[str, str]:
    return {"argocd.argoproj.io/tracking-id": f"{application}:apps/Deployment:argocd/x"}


def application(name: str, *resources: dict[str, str], **more: Any) -> Object:
    return item(
        "Application",
        name,
        "argocd",
        api="argoproj.io/v1alpha1",
        spec={"destination": {"name": "in-cluster"}},
        status={"resources": list(resources)},
        **more,
    )


def crd(kind: str, **more: Any) -> Object:
    spec = {
        "group": "a.example",
        "names": {"kind": kind, "plural": f"{kind.lower()}s"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": False}, {"name": "v2", "served": True}],
    }
    return item(CRD.kind, f"{kind.lower()}s.a.example", api=CRD.api_version, spec=spec, **more)


def looked_at(cluster: Cluster, *entries: LedgerEntry) -> Inventory:
    return Inventory(cast(Kube, cluster), frozenset(entries), MARKED, "demo")


NAMESPACE = LedgerEntry("v1", "Namespace", "", "argocd")
ROOT = LedgerEntry("argoproj.io/v1alpha1", "Application", "argocd", "root")


def names(items: Any) -> list[str]:
    return sorted(each["metadata"]["name"] for each in items)


def test_objects_older_than_the_mark_are_never_ours() -> None:
    old, young = item("Namespace", "argocd", made=BEFORE), item("Namespace", "argocd")
    assert names(looked_at(Cluster(old), NAMESPACE).namespaces) == []
    assert names(looked_at(Cluster(young), NAMESPACE).namespaces) == ["argocd"]
    applied = {"managedFields": [{"manager": "k8s-ucp-claim"}]}
    assert looked_at(Cluster()).is_made(item("ConfigMap", "x", **applied))
    assert not looked_at(Cluster()).is_made(item("ConfigMap", "x", made=BEFORE, **applied))
    assert not looked_at(Cluster()).is_made(
        item("ConfigMap", "x", managedFields=[{"manager": "kubectl"}])
    )


def test_our_applications_are_those_of_root_and_of_our_application_sets() -> None:
    cluster = Cluster(
        application("root"),
        application("clusters", annotations=kept_by("root")),
        application("deep", annotations=kept_by("clusters")),
        application("echo-stage", labels={"k8s-ucp.io/topology": "demo"}),
        application("theirs"),
        application("of-another", labels={"k8s-ucp.io/topology": "shop"}),
        application("older", annotations=kept_by("root"), made=BEFORE),
    )
    ours = looked_at(cluster, ROOT)
    assert names(ours.applications) == ["clusters", "deep", "echo-stage", "root"]
    assert [each for each in ours.foreign() if "Application" in each] == []


def test_objects_tracked_by_our_applications_are_ours() -> None:
    told = [
        {"version": "v1", "kind": "Secret", "namespace": "monitoring", "name": each}
        for each in ("kept", "taken", "older", "gone")
    ]
    told += [{"version": "v1", "kind": "Namespace", "name": each} for each in ("argocd", "team")]
    cluster = Cluster(
        application("root", *told),
        item("Namespace", "argocd", annotations=kept_by("root")),
        item("Namespace", "team", annotations=kept_by("root")),
        item("Secret", "kept", "monitoring", annotations=kept_by("root")),
        item("Secret", "taken", "monitoring", annotations=kept_by("another")),
        item("Secret", "older", "monitoring", annotations=kept_by("root"), made=BEFORE),
    )
    ours = looked_at(cluster, ROOT, NAMESPACE)
    assert names(ours.created) == ["kept"]
    assert names(ours.namespaces) == ["argocd"]
    assert names(ours.shared) == ["team"]


def test_foreign_objects_that_a_deletion_would_take_are_listed() -> None:
    kind = LedgerEntry(CRD.api_version, CRD.kind, "", "things.a.example")
    set_ = item("StatefulSet", "loki", "argocd", annotations=kept_by("root"), api="apps/v1")
    cluster = Cluster(
        item("Namespace", "argocd"),
        application("root"),
        crd("Thing"),
        crd("Made", ownerReferences=[{"kind": "CompositeResourceDefinition"}]),
        crd("Other"),
        item("Thing", "mine", "elsewhere", api="a.example/v2", annotations=kept_by("root")),
        item("Thing", "inside", "argocd", api="a.example/v2"),
        item("Thing", "theirs", "elsewhere", api="a.example/v2"),
        item("Made", "asked-for", "elsewhere", api="a.example/v2"),
        item("Other", "unrelated", "elsewhere", api="a.example/v2"),
        set_,
        item("PersistentVolumeClaim", "data-loki-0", "argocd"),
        item("PersistentVolumeClaim", "diary", "argocd"),
        item("Deployment", "shop", "argocd", api="apps/v1"),
        item("Deployment", "far", "elsewhere", api="apps/v1"),
        item("Job", "child", "argocd", api="batch/v1", ownerReferences=[{"kind": "CronJob"}]),
    )
    assert looked_at(cluster, NAMESPACE, ROOT, MAKER, kind).foreign() == [
        "Deployment argocd/shop",
        "Made elsewhere/asked-for",
        "PersistentVolumeClaim argocd/diary",
        "Thing elsewhere/theirs",
    ]


def by(*managers: str) -> dict[str, Any]:
    return {"managedFields": [{"manager": each, "operation": "Update"} for each in managers]}


def test_foreign_objects_of_any_kind_in_our_namespace_are_listed() -> None:
    kubectl = by("kubectl-create")
    cluster = Cluster(
        item("Namespace", "argocd"),
        application("root"),
        item("Secret", "license", "argocd", **kubectl),
        item("ConfigMap", "dashboard", "argocd", **by("helm")),
        item("Service", "far-away", "argocd"),
        item("Ingress", "shop", "argocd", api="networking.k8s.io/v1", **kubectl),
        item("Pod", "debugging", "argocd", **by("kubectl-run", "kubelet")),
        item("ReplicaSet", "old", "argocd", api="apps/v1", **kubectl),
        item("PodDisruptionBudget", "shop", "argocd", api="policy/v1", **kubectl),
        item("Certificate", "shop", "argocd", api="cert-manager.io/v1", **kubectl),
        item("Secret", "added-in-the-ui", "argocd", labels=TYPE, **by("argocd-server")),
        # Foreign despite our field manager: our workloads are tracked or in the ledger.
        item("Deployment", "shop", "argocd", api="apps/v1", **by("k8s-ucp")),
    )
    assert looked_at(cluster, NAMESPACE, ROOT).foreign() == [
        "Certificate argocd/shop",
        "ConfigMap argocd/dashboard",
        "Deployment argocd/shop",
        "Ingress argocd/shop",
        "Pod argocd/debugging",
        "PodDisruptionBudget argocd/shop",
        "ReplicaSet argocd/old",
        "Secret argocd/added-in-the-ui",
        "Secret argocd/license",
        "Service argocd/far-away",
    ]


TYPE = {"argocd.argoproj.io/secret-type": "repository"}


def test_objects_made_by_ucp_the_cluster_and_our_workloads_are_not_foreign() -> None:
    containers = [
        {"name": "server", "image": "quay.io/argoproj/argocd:v3", "command": ["/bin/argocd-server"]}
    ]
    spec = {"template": {"spec": {"containers": containers}}}
    cluster = Cluster(
        item("Namespace", "argocd"),
        application("root"),
        item(
            "Deployment",
            "argocd-server",
            "argocd",
            api="apps/v1",
            spec=spec,
            annotations=kept_by("root"),
        ),
        item("Pod", "argocd-server-x", "argocd", ownerReferences=[{"kind": "ReplicaSet"}]),
        item("Secret", "argocd-initial-admin-secret", "argocd", **by("argocd-server")),
        item("Secret", "argocd-redis", "argocd", **by("argocd")),
        item("Secret", "cluster-demo-stage", "argocd", labels={**TYPE, **OURS}, **by("x")),
        item("Secret", "restored", "argocd", **by("k8s-ucp-restore")),
        item("Secret", "theirs", "argocd", labels={"k8s-ucp.io/kubeconfig": ""}, **by("kubectl")),
        item("Secret", "default-token-x", "argocd", type="kubernetes.io/service-account-token"),
        item("ConfigMap", "kube-root-ca.crt", "argocd", **by("kube-controller-manager")),
        item("ServiceAccount", "default", "argocd"),
        item("Lease", "leader", "argocd", api="coordination.k8s.io/v1"),
        item("Event", "x", "argocd"),
        item("ConfigMap", "elsewhere", "default", **by("kubectl")),
    )
    ours = looked_at(cluster, NAMESPACE, ROOT)
    assert ours.foreign() == []
    # A stop that was interrupted after deleting the workloads still knows these.
    assert {"argocd-initial-admin-secret", "argocd-redis", "restored"} <= set(
        names(ours.made_inside())
    )
    assert not {"default", "kube-root-ca.crt", "argocd-server"} & set(names(ours.made_inside()))
    left = [each for each in cluster.items if each["kind"] not in ("Deployment", "Application")]
    written = [LedgerEntry.of(each) for each in ours.made_inside()]
    assert looked_at(Cluster(*left), NAMESPACE, ROOT, *written).foreign() == []


OURS = {"k8s-ucp.io/topology": "demo"}


def test_objects_written_by_a_foreign_workload_are_foreign() -> None:
    spec = {"template": {"spec": {"containers": [{"name": "kubectl", "image": "kubectl"}]}}}
    cluster = Cluster(
        item("Namespace", "argocd"),
        item("Deployment", "shell", "argocd", api="apps/v1", spec=spec),
        item("ConfigMap", "notes", "argocd", **by("kubectl")),
    )
    found = looked_at(cluster, NAMESPACE).foreign()
    assert found == ["ConfigMap argocd/notes", "Deployment argocd/shell"]


def test_an_adopted_argo_cd_keeps_foreign_objects() -> None:
    entry = LedgerEntry("argoproj.io/v1alpha1", "AppProject", "argocd", "applications")
    theirs = application("theirs", annotations=kept_by("theirs-too"))
    leaning = application("leaning")
    leaning["spec"]["project"] = "applications"
    project = item("AppProject", "applications", "argocd", api=entry.api_version)
    items = (application("root"), theirs, leaning, project)
    adopted = looked_at(Cluster(*items), ROOT, entry)
    assert adopted.argocd_is_foreign
    assert adopted.foreign() == ["Application leaning (in our project applications)"]
    assert not adopted.is_made(item("ConfigMap", "x", annotations=kept_by("theirs")))
    assert adopted.is_made(item("ConfigMap", "x", annotations=kept_by("root")))
    whole = looked_at(Cluster(*items, item("Namespace", "argocd")), ROOT, entry, NAMESPACE)
    assert not whole.argocd_is_foreign


def test_an_application_that_ucp_applied_is_ours_even_if_not_in_the_ledger() -> None:
    applied = {"managedFields": [{"manager": "k8s-ucp", "operation": "Apply"}]}
    noted = {"managedFields": [{"manager": "k8s-ucp", "operation": "Update"}]}
    cluster = Cluster(
        application("root", **applied),
        application("old", made=BEFORE, **applied),
        application("refreshed-by-us", **noted),
    )
    assert names(looked_at(cluster).applications) == ["root"]


def test_an_unserved_crd_has_no_kind() -> None:
    assert kind_of_crd(crd("Thing")) == Kind("a.example/v2", "Thing", "things")
    dead = crd("Thing")
    dead["spec"]["versions"] = [{"name": "v1", "served": False}]
    assert kind_of_crd(dead) is None


def test_namespaces_of_webhook_services_are_read() -> None:
    hooks = [{"clientConfig": {"service": {"namespace": "a"}}}, {"clientConfig": {"url": "x"}}]
    assert list(webhook_namespaces({"webhooks": hooks})) == ["a", ""]
    assert list(webhook_namespaces({})) == []


def test_the_ledger_is_persistent_and_a_corrupt_one_is_reported(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    assert ledger.entries() == frozenset()
    ledger.add([ROOT])
    ledger.add([NAMESPACE, ROOT])
    assert ledger.entries() == {NAMESPACE, ROOT}
    assert str(ROOT) == "Application root in argocd"
    assert (tmp_path / "ledger.json").stat().st_mode & 0o077 == 0
    (tmp_path / "ledger.json").write_text('[{"kind": "x"}]')
    with pytest.raises(UcpError, match="is corrupt") as caught:
        ledger.entries()
    assert "ucp start" in (caught.value.next or "")
    ledger.remove()
    assert ledger.entries() == frozenset()
