"""Findings of `ucp doctor` about real problems."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from k8s_ucp import names
from k8s_ucp.clusters.certificate_signing import LIFETIME
from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.inspect import cluster_snapshot
from k8s_ucp.inspect.doctor import checks, examination
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.kube import LOCAL_CLUSTER, NAMESPACE, SECRET
from k8s_ucp.timestamps import stamp
from k8s_ucp.topology import default
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.registration.planted_secrets import (
    kubeconfig_secret,
    person_s_secret,
)
from tests.integration.reconciler.world import ARGOCD, Clusters, eventually

pytestmark = pytest.mark.engines

TOPOLOGY = default("demo", ["stage", "prod"])


def found(world: Clusters, *, later: float = 0) -> dict[str, Finding]:
    """Findings by id. later: check as if it were so many seconds later."""

    def kubeconfig(cluster: str) -> Path:
        path = world.folder / f"{cluster}.json"
        configs = {**world.provider.configs, "demo-core": world.core_config}
        path.write_text(json.dumps(configs[cluster]))
        return path

    seen = cluster_snapshot.collect(TOPOLOGY, kubeconfig, list)
    asked = examination.collect(TOPOLOGY, seen, lambda: world.core, time.time() + later)
    return {each.id: each for each in checks.findings(asked)}


def test_doctor_has_no_findings_on_a_healthy_topology(world: Clusters) -> None:
    world.start()
    for environment in ("stage", "prod"):
        world.declare(environment)
        world.await_registered(f"demo-{environment}")
    assert found(world) == {}


def test_doctor_reports_registration_conflicts_and_unreachable_clusters(
    world: Clusters, planes: Planes
) -> None:
    world.list_environments("stage", "prod", "eu")
    world.core.create(person_s_secret({names.SECRET_TYPE: "cluster"}))
    world.start(resync_seconds=0.2)
    world.declare("stage")
    world.declare("prod")
    world.await_registered("demo-prod")
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: ""}
    kubeconfig_secret(world, "second-kubeconfig", "crossplane-system", labels=labels)
    world.await_note("crossplane-system/second-kubeconfig", "EnvironmentTaken")
    world.await_condition(names.REGISTERED, "False", "NameTaken")
    planes.provider.stop("demo-prod")
    try:
        world.await_condition(names.REACHABLE, "False", None, "demo-prod")
        seen = found(world)
    finally:
        planes.provider.start("demo-prod")
    assert set(seen) == {
        "cluster/demo-stage/NameTaken",
        "cluster/second/EnvironmentTaken",
        "cluster/demo-prod/Unreachable",
        "environment/eu",
    }
    assert "ucp clusters forget demo-prod" in seen["cluster/demo-prod/Unreachable"].next


def test_doctor_reports_an_expired_token_when_no_reconciler_runs(world: Clusters) -> None:
    world.start(lease_seconds=1)
    world.declare()
    world.await_registered()
    world.stop()
    past = time.time() - 86_400
    change = {
        "metadata": {
            "annotations": {names.TOKEN_ISSUED: stamp(past), names.TOKEN_EXPIRES: stamp(past + 60)}
        }
    }
    world.core.patch(SECRET, "cluster-demo-stage", ARGOCD, change)
    eventually(lambda: "token/demo-stage" in found(world), "the finding")
    assert found(world)["token/demo-stage"].severity == "error"


def test_doctor_reports_stuck_deletions_paused_objects_and_expiring_certificates(
    world: Clusters,
) -> None:
    """No namespace controller runs here, so a deleted namespace keeps terminating."""
    core, cluster = world.core, TOPOLOGY.core_cluster
    core.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}})
    world.declare()
    pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    core.patch(LOCAL_CLUSTER, "demo-stage", names.CLUSTERS_NAMESPACE, pause)
    old = Certificates(world.folder / "old")
    old.ensure(datetime.now(UTC) - LIFETIME + timedelta(days=5))
    pem, key = (base64.b64encode(each.read_bytes()).decode() for each in old.server)
    about = {"name": "web-tls", "namespace": "default"}
    data = {"tls.crt": pem, "tls.key": key}
    core.create(
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        | {"metadata": about, "data": data}
    )
    try:
        core.delete(NAMESPACE, "leaving")
        seen = found(world)
        assert seen[f"certificate/{cluster}/Secret/default/web-tls"].severity == "warning"
        assert f"certificate/{cluster}/kube-apiserver" not in seen
        paused = seen[f"paused/{cluster}/LocalCluster/{names.CLUSTERS_NAMESPACE}/demo-stage"]
        assert "set by k8s-ucp" in paused.message
        assert f"deletion/{cluster}/Namespace/leaving" not in seen
        seen = found(world, later=600)
        assert "terminating for 10 min" in seen[f"deletion/{cluster}/Namespace/leaving"].message
        a_century = 100 * 365 * 86_400
        assert found(world, later=a_century)[f"certificate/{cluster}/kube-apiserver"]
    finally:
        core.delete(SECRET, "web-tls", "default")
        namespace = core.get(NAMESPACE, "leaving")
        core.replace({**namespace, "spec": {"finalizers": []}}, subresource="finalize")
