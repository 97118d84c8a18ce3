"""What the reconciler reports: Events, notes of registrations, metrics."""

from __future__ import annotations

import base64
import json
import time

import pytest

from k8s_ucp import names
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET
from k8s_ucp.reconciler.registration.notes import read_notes
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.registration.planted_secrets import kubeconfig_secret
from tests.integration.reconciler.runtime.health_pages import page
from tests.integration.reconciler.world import ARGOCD, CLUSTERS, Clusters, eventually

pytestmark = pytest.mark.engines


def test_each_transition_is_recorded_as_one_event(world: Clusters, planes: Planes) -> None:
    world.start(resync_seconds=0.2)
    world.declare("prod")
    world.await_registered("demo-prod")
    planes.provider.stop("demo-prod")
    world.await_condition(names.REACHABLE, "False", None, "demo-prod")
    planes.provider.start("demo-prod")
    world.await_condition(names.REACHABLE, "True", None, "demo-prod")
    eventually(lambda: ("Normal", "Answers") in world.events("demo-prod"), "the event")
    world.stop()
    world.start(resync_seconds=0.2)
    time.sleep(1)
    told = world.events("demo-prod")
    assert told.count(("Normal", "Registered")) == 1
    assert told.count(("Warning", "Unreachable")) == 1
    assert ("Normal", "Answers") in told


def test_a_refused_registration_is_a_warning_event(world: Clusters) -> None:
    world.list_environments("prod")
    world.start()
    world.declare()
    world.await_condition(names.REGISTERED, "False", "EnvironmentUnknown")
    eventually(lambda: ("Warning", "EnvironmentUnknown") in world.events("demo-stage"), "an event")


def test_a_labeled_source_has_a_note_that_is_deleted_with_it(world: Clusters) -> None:
    world.start()
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: ""}
    kubeconfig_secret(world, "demo-prod-kubeconfig", "crossplane-system", labels=labels)
    source = "crossplane-system/demo-prod-kubeconfig"
    world.await_note(source, "Registered")
    note = read_notes(world.core)[source]
    assert (note["owner"]["kind"], note["environment"]) == ("Secret", "prod")
    world.core.delete(SECRET, "demo-prod-kubeconfig", "crossplane-system")
    eventually(lambda: source not in read_notes(world.core), "the end of the note")


def test_an_owner_that_cannot_be_read_is_reported_and_its_source_not_registered(
    world: Clusters,
) -> None:
    world.start()
    owner = {
        "apiVersion": "container.gcp.m.upbound.io/v1beta1",
        "kind": "Cluster",
        "name": "demo-prod",
        "uid": "0",
        "controller": True,
    }
    kubeconfig_secret(world, "demo-prod", "crossplane-system", ownerReferences=[owner])
    world.await_note("crossplane-system/demo-prod", "OwnerUnreadable")
    assert world.cluster_secret("demo-prod") is None


def figures(port: int | None) -> dict[str, float]:
    status, text = page(port, "/metrics")
    assert status == 200
    lines = [each.rsplit(" ", 1) for each in text.splitlines() if not each.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_metrics_follow_registration_outage_and_deletion(world: Clusters, planes: Planes) -> None:
    reconciler = world.start(health_port=0, resync_seconds=0.2)
    port = reconciler.health_port
    world.declare("prod")
    secret = world.await_registered("demo-prod")
    on = '{cluster="demo-prod"}'
    registered = f"k8s_ucp_cluster_registered{on}"
    converged = 'k8s_ucp_convergence_seconds_count{controller="registration"}'
    eventually(
        lambda: figures(port).get(registered) == 1 and figures(port).get(converged, 0) >= 1,
        "the figures, after the Secret",
    )
    seen = figures(port)
    assert seen[f"k8s_ucp_cluster_reachable{on}"] == 1
    assert seen[f"k8s_ucp_cluster_freshness_seconds{on}"] < 5
    assert seen[f"k8s_ucp_token_expires_seconds{on}"] > time.time()
    assert seen['k8s_ucp_leading{controller="registration"}'] == 1
    renewals = 'k8s_ucp_token_renewals_total{cluster="demo-prod",identity="k8s-ucp-argocd"'
    assert seen[f'{renewals},result="done"}}'] == 1
    planes.provider.stop("demo-prod")
    try:
        eventually(lambda: figures(port)[f"k8s_ucp_cluster_reachable{on}"] == 0, "the figure")
        stale = figures(port)[f"k8s_ucp_cluster_freshness_seconds{on}"]
        time.sleep(0.5)
        assert figures(port)[f"k8s_ucp_cluster_freshness_seconds{on}"] > stale
    finally:
        planes.provider.start("demo-prod")
    eventually(lambda: figures(port)[f"k8s_ucp_cluster_reachable{on}"] == 1, "the figure, again")
    token = json.loads(base64.b64decode(secret["data"]["config"]))["bearerToken"]
    assert token not in page(port, "/metrics")[1]
    world.core.delete(LOCAL_CLUSTER, "demo-prod", CLUSTERS)
    world.await_gone("demo-prod")
    eventually(lambda: f"k8s_ucp_cluster_reachable{on}" not in figures(port), "its end")
    assert world.core.list_all(SECRET, ARGOCD) == []
