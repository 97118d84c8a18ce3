"""Failed resources are requeued once the cause is resolved, in any namespace."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.aws.crds import CLUSTER_PROVIDER_CONFIG
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.kube import Kind, Kube, Object, Unreachable
from k8s_ucp.reconciler.aws.controller import LONGEST_SECONDS, PATIENCE_SECONDS, AwsController
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.runtime.informer import Informer
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import Settings
from tests.unit.reconciler.objects import NOW

VPC, SUBNET, ROLE, CLUSTER, CLUSTER_AUTH = (
    KINDS[f"{each}.aws.m.upbound.io"].kind
    for each in ("VPC.ec2", "Subnet.ec2", "Role.iam", "Cluster.eks", "ClusterAuth.eks")
)


def item(kind: Kind, name: str, namespace: str | None, synced: str, **annotations: str) -> Object:
    found = kind.object(name, namespace, annotations=annotations)
    found["metadata"]["resourceVersion"] = f"{name} {synced}"
    condition = {"type": "Synced", "status": synced, "reason": "Because"}
    return {**found, "status": {"conditions": [condition]}}


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsController]:
    cluster = {"server": "http://127.0.0.1:1"}
    kube = Kube(
        {
            "clusters": [{"name": "core", "cluster": cluster}],
            "contexts": [{"name": "core", "context": {"cluster": "core"}}],
            "current-context": "core",
        }
    )
    monkeypatch.setattr("k8s_ucp.reconciler.aws.controller.connect", lambda *_, **__: kube)
    account = AwsAccount("http://127.0.0.1:1", "key", "secret", "demo")
    settings = Settings(kubeconfig=tmp_path, machine="here", topology="demo", aws=account)
    found = AwsController(Runtime(kube, settings, {}, Log(StringIO()), lambda: NOW))
    for name, network in (("waits", "shared"), ("waits-for-another", "private")):
        reference = {"vpcIdRef": {"name": network, "namespace": "ucp-clusters"}}
        waiting = item(SUBNET, name, "team", "False")
        see(found, {**waiting, "spec": {"forProvider": reference}})
    see(found, item(SUBNET, "well", "team", "True"))
    see(found, item(ROLE, "broken", "other", "False"))
    queued(found)
    yield found
    kube.close()


def see(controller: AwsController, shown: Object) -> None:
    """Deliver the object as an event of the watch of its kind."""
    watch = next(each for each in controller.watches() if _kind(each) == shown["kind"])
    watch._put(shown)


def _kind(watch: Informer) -> Any:
    return watch.spec.kind.kind


def queued(controller: AwsController) -> set[str]:
    found = set()
    while key := controller.queue.take(patience=0.0):
        found.add(key.rpartition("/")[2])
        controller.queue.done(key)
    return found


def test_a_failed_resource_is_requeued_when_its_reference_becomes_available(
    controller: AwsController,
) -> None:
    see(controller, item(VPC, "shared", "ucp-clusters", "False"))
    assert queued(controller) == {"shared"}
    there = {"crossplane.io/external-name": "vpc-1"}
    see(controller, item(VPC, "shared", "ucp-clusters", "True", **there))
    assert queued(controller) == {"shared", "waits"}


def test_a_new_resource_waits_for_the_object_it_refers_to(
    controller: AwsController,
) -> None:
    reference = {"vpcIdRef": {"name": "new", "namespace": "ucp-clusters"}}
    declared = SUBNET.object("first", "team", spec={"forProvider": reference})
    see(controller, declared)
    key = controller.queue.take(patience=0.0)
    assert key and key.endswith("team/first")
    # The API server is not queried: none runs at this address.
    assert controller.reconcile(key) == PATIENCE_SECONDS
    controller.queue.done(key, PATIENCE_SECONDS)
    see(controller, VPC.object("new", "ucp-clusters"))
    assert queued(controller) == {"new"}
    there = {"crossplane.io/external-name": "vpc-2"}
    see(controller, item(VPC, "new", "ucp-clusters", "True", **there))
    assert queued(controller) == {"new", "first"}


def test_a_cluster_auth_is_reconciled_once_its_cluster_is_ready(
    controller: AwsController,
) -> None:
    there = {"crossplane.io/external-name": "demo"}
    see(controller, item(CLUSTER, "demo", "ucp-clusters", "True", **there))
    spec = {"forProvider": {"clusterNameRef": {"name": "demo"}}}
    see(controller, {**item(CLUSTER_AUTH, "access", "ucp-clusters", "True"), "spec": spec})
    queued(controller)
    ready = item(CLUSTER, "demo", "ucp-clusters", "True", **there)
    ready["status"]["conditions"].append({"type": "Ready", "status": "True", "reason": "Available"})
    see(controller, {**ready, "metadata": {**ready["metadata"], "resourceVersion": "later"}})
    assert queued(controller) == {"access"}


def test_a_reference_to_nothing_is_reported_after_the_patience_is_over(
    controller: AwsController,
) -> None:
    reference = {"vpcIdRef": {"name": "mistyped"}}
    see(controller, SUBNET.object("lost", "team", spec={"forProvider": reference}))
    key = controller.queue.take(patience=0.0)
    assert key and controller.reconcile(key) == PATIENCE_SECONDS
    with pytest.raises(Unreachable):
        controller.reconcile(key)


def test_failed_resources_are_requeued_when_the_provider_config_changes(
    controller: AwsController,
) -> None:
    see(controller, item(CLUSTER_PROVIDER_CONFIG, "default", None, "True"))
    assert queued(controller) == {"default", "waits", "waits-for-another", "broken"}


def test_the_backoff_of_a_failed_resource_is_limited(controller: AwsController) -> None:
    key = f"{next(iter(KINDS))}/team/waits"
    for _ in range(20):
        controller.queue.add(key)
        controller.queue.take(patience=0.0)
        delay = controller.queue.failed(key)
    assert 10 < delay <= LONGEST_SECONDS
