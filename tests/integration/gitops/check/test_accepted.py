"""What is rendered, at a real API server: built-in kinds and kinds of ours are accepted, and guard
rails refuse what they are there for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.components.pods.component import POD
from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from tests import provider_fields
from tests.control_planes import eventually
from tests.integration.gitops.core_kinds import serving
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

pytestmark = pytest.mark.engines

ADDONS = {
    "ingress": "gateway",
    "prometheus": True,
    "loki": True,
    "external-dns": True,
    "velero": True,
}


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Kube]:
    with serving(tmp_path_factory.mktemp("accepted"), toolbox) as kube:
        yield kube


def built(topology: Topology, toolbox: Toolbox, folder: Path, *roots: str) -> list[Any]:
    render_to(folder, render(topology, FACTS))
    return [
        each
        for root in roots
        for each in YAML(typ="safe", pure=True).load_all(
            build(toolbox.path("kustomize"), folder / "core" / root)
        )
        if each
    ]


def test_every_object_of_a_kind_that_is_served_is_accepted(
    core: Kube, toolbox: Toolbox, tmp_path: Path
) -> None:
    topology = on_clouds(addons=ADDONS, guardRails={"dev": "warn", "prod": "deny"})
    roots = (
        "bootstrap/kind",
        "providers",
        "api",
        "databases",
        "clusters",
        "policies/overlays/prod",
    )
    found = [
        each
        for each in built(topology, toolbox, tmp_path, *roots)
        if not provider_fields.is_ours_to_check(each)
    ]
    monitoring = render(topology, FACTS).core["platform/reconciler/monitoring.yaml"].decode()
    found += [each for each in YAML(typ="safe").load_all(monitoring) if each]
    refused = []
    for each in found:
        try:
            core.apply(each, dry_run=True)
        except KubeError as error:
            refused.append(f"{each['kind']} {each['metadata']['name']}: {error.message}")
    assert refused == []
    kinds = {each["kind"] for each in found}
    assert {
        "Application",
        "ApplicationSet",
        "AppProject",
        "Composition",
        "CompositeResourceDefinition",
        "ConfigMap",
        "DeploymentRuntimeConfig",
        "Function",
        "LocalCluster",
        "Postgres",
        "Provider",
        "Secret",
        "ValidatingAdmissionPolicy",
    } <= kinds


def test_a_wrong_object_is_refused(core: Kube) -> None:
    """The dry run looks at fields: what the test above passes is worth something."""
    with pytest.raises(KubeError, match=r"spec\.pakcage"):
        core.apply(
            {
                "apiVersion": "pkg.crossplane.io/v1",
                "kind": "Provider",
                "metadata": {"name": "x"},
                "spec": {"pakcage": "xpkg.example.org/x:v1"},
            },
            dry_run=True,
        )


def test_databases_are_what_their_kind_takes(core: Kube, toolbox: Toolbox, tmp_path: Path) -> None:
    documents = built(on_clouds(), toolbox, tmp_path, "databases")
    postgres = [each for each in documents if each["kind"] == "Postgres"]
    assert len(postgres) == 5
    for each in postgres:
        core.apply(each, dry_run=True)
    for change, why in (
        ({"storageGB": 1}, "should be greater than or equal to 10"),
        ({"size": "huge"}, "Unsupported value"),
        ({"version": "latest"}, "should match"),
        ({"environment": "../prod"}, "should match"),
    ):
        with pytest.raises(KubeError, match=why):
            core.apply({**postgres[0], "spec": {**postgres[0]["spec"], **change}}, dry_run=True)


def pod(image: str = "nginx:1.29.1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def cron_job(image: str) -> dict[str, Any]:
    template = {"spec": {**pod(image)["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}},
    }


def stateful_set(image: str) -> dict[str, Any]:
    labels = {"app": "try"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {
            "selector": {"matchLabels": labels},
            "serviceName": "try",
            "template": {"metadata": {"labels": labels}, "spec": pod(image)["spec"]},
        },
    }


def port(**more: Any) -> dict[str, Any]:
    return {"containerPort": 8080, **more}


def capable(*names: str) -> dict[str, Any]:
    security = {"capabilities": {"add": list(names), "drop": ["MKNOD"]}}
    return {"name": "main", "image": "a:1", "securityContext": security}


DIGEST = "@sha256:" + "a" * 64
PRIVILEGED = {"name": "main", "image": "a:1", "securityContext": {"privileged": True}}
TOKEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "try",
        "namespace": "apps",
        "annotations": {"kubernetes.io/service-account.name": "default"},
    },
    "type": "kubernetes.io/service-account-token",
}
REFUSED = {
    "latest": (pod("nginx:latest"), "nginx:latest"),
    "no tag": (pod("registry.example.org:5000/nginx"), "by a tag that moves, or by none"),
    "a branch": (pod("a/b:main"), "a/b:main"),
    "an init container": (
        pod(initContainers=[{"name": "first", "image": "busybox"}]),
        "by none: busybox",
    ),
    "a cron job": (cron_job("a:latest"), "a:latest"),
    "a stateful set": (stateful_set("a:latest"), "a:latest"),
    "the node's network": (pod(hostNetwork=True), "shares with its node: hostNetwork"),
    "the node's files": (
        pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
        "hostPath",
    ),
    "privileged": (pod(containers=[PRIVILEGED]), "privileged"),
    "a port of the node": (
        pod(containers=[{"name": "main", "image": "a:1", "ports": [port(hostPort=80)]}]),
        "hostPort",
    ),
    "a capability": (pod(containers=[capable("NET_ADMIN")]), "capabilities are added to: main"),
    "all capabilities": (
        pod(initContainers=[{**capable("CHOWN", "ALL"), "name": "first"}]),
        "capabilities are added to: first",
    ),
    "a lasting token": (TOKEN, "never expires"),
}
ADMITTED = {
    "a version": pod(),
    "a port and a version": pod("registry.example.org:5000/a/b:1.2.3-rc.1"),
    "a digest": pod(f"nginx{DIGEST}"),
    "latest by digest": pod(f"nginx:latest{DIGEST}"),
    "a cron job": cron_job("a:1"),
    "a port of its own": pod(
        containers=[{"name": "main", "image": "a:1", "ports": [port(name="web")]}]
    ),
    "a capability that it has": pod(containers=[capable("NET_BIND_SERVICE", "CHOWN")]),
    "another secret": {**TOKEN, "type": "Opaque"},
    "the platform": {**pod("a:latest"), "metadata": {"name": "try", "namespace": "monitoring"}},
}


@pytest.fixture(scope="module")
def guarded(
    core: Kube, toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kube]:
    """The core, with prod's guard rails in force."""
    topology = demo(guardRails={"stage": "warn", "prod": "deny"})
    folder = tmp_path_factory.mktemp("guarded")
    for each in built(topology, toolbox, folder, "policies/overlays/prod"):
        core.apply(each)
    core.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "apps"},
        }
    )

    def in_force() -> bool:
        return all(refusal(core, item) for item, _ in REFUSED.values())

    eventually(in_force)
    yield core


def refusal(kube: Kube, item: dict[str, Any]) -> str:
    try:
        kube.apply(item, dry_run=True)
    except KubeError as error:
        return error.message
    return ""


@pytest.mark.parametrize("case", REFUSED)
def test_guard_rails_refuse(case: str, guarded: Kube) -> None:
    item, why = REFUSED[case]
    assert why in refusal(guarded, item)


@pytest.mark.parametrize("case", ADMITTED)
def test_guard_rails_admit(case: str, guarded: Kube) -> None:
    assert refusal(guarded, ADMITTED[case]) == ""


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"image": "a:1", "securityContext": {"privileged": True}}, "privileged"),
        ({"image": "a:latest"}, "a:latest"),
        ({"image": "a:1"}, ""),
    ],
)
def test_guard_rails_hold_for_kubectl_debug(
    container: dict[str, Any], why: str, guarded: Kube
) -> None:
    running = pod()
    running["metadata"]["name"] = "running"
    guarded.apply(running)
    added = {"spec": {"ephemeralContainers": [{"name": "debugger", **container}]}}
    try:
        guarded.patch(
            POD, "running", "apps", added, type="strategic", subresource="ephemeralcontainers"
        )
        assert not why
    except KubeError as error:
        assert why, error.message
        assert why in error.message
    finally:
        guarded.delete(POD, "running", "apps")
        eventually(lambda: guarded.find(POD, "running", "apps") is None)
