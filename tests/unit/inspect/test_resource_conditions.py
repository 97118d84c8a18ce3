"""The resource that keeps a cluster or a claim from becoming ready, with its message."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from k8s_ucp.inspect.claim_states import ClaimState, claim_states, collect
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot, ComponentStatus
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.resource_conditions import first_cause
from k8s_ucp.inspect.status import reasons, summarize, why_environment
from k8s_ucp.kube import Object
from k8s_ucp.topology import Environment, Topology, default
from tests.unit.inspect.doctor.examinations import examined

WELL = {"Synced": ("True", "ReconcileSuccess", ""), "Ready": ("True", "Available", "")}
CREATING = {**WELL, "Ready": ("False", "Creating", "")}
SLOW = {**WELL, "Ready": ("False", "Unavailable", "CREATING")}
DENIED = {
    "Synced": ("False", "ReconcileError", "CreateCluster: AccessDenied: not yours"),
    "Ready": ("False", "Creating", ""),
}
WAITS = {"Synced": ("False", "ReconcileError", "VPC demo is not in the cloud yet")}
ODD = {"Synced": ("False", "ReconcileError", "cannot resolve references: no such field")}
CRASHED = {**WELL, "Ready": ("False", "Unavailable", "Postgres crashed; next: ucp logs rds-x")}
PAUSED = {**WELL, "Synced": ("False", "ReconcilePaused", "Reconciliation is paused")}
ASYNC = {**CREATING, "LastAsyncOperation": ("False", "AsyncCreateFailure", "out of IPs")}

Conditions = dict[str, tuple[str, str, str]]


def resource(kind: str, conditions: Conditions, name: str = "demo-stage") -> Object:
    told = [
        {"type": type, "status": status, "reason": reason, "message": message}
        for type, (status, reason, message) in conditions.items()
    ]
    labels = {"k8s-ucp.io/environment": "stage"}
    metadata = {"name": name, "namespace": "ucp-clusters", "labels": labels}
    head = {"apiVersion": "eks.aws.m.upbound.io/v1beta1", "kind": kind, "metadata": metadata}
    return {**head, "status": {"conditions": told}} if told else head


@pytest.mark.parametrize(
    ("conditions", "expected", "failed"),
    [
        ([WELL, WELL], None, None),
        ([WELL, CREATING], "B demo-stage: Creating", False),
        ([CREATING, SLOW], "B demo-stage: CREATING", False),
        ([WAITS, DENIED], "B demo-stage: CreateCluster: AccessDenied: not yours", True),
        ([WAITS, CREATING], "B demo-stage: Creating", False),
        ([WELL, WAITS], "B demo-stage: VPC demo is not in the cloud yet", False),
        ([WELL, ODD], "B demo-stage: cannot resolve references: no such field", True),
        ([CREATING, ASYNC], "B demo-stage: out of IPs", True),
        ([SLOW, CRASHED], "B demo-stage: Postgres crashed; next: ucp logs rds-x", True),
        ([WELL, PAUSED], "B demo-stage: Reconciliation is paused", False),
        ([{}, {}], "A demo-stage: not reconciled yet", False),
    ],
)
def test_the_most_direct_cause_is_reported(
    conditions: list[Conditions], expected: str | None, failed: bool | None
) -> None:
    found = first_cause(map(resource, "AB", conditions))
    assert (found and str(found), found and found.failed) == (expected, failed)


def on_eks() -> Topology:
    topology = default("demo", ["stage"])
    cluster = {"provider": "eks"}
    environment = Environment.model_validate({"name": "stage", "cluster": cluster})
    spec = topology.spec.model_copy(update={"environments": [environment]})
    return topology.model_copy(update={"spec": spec})


def told(seen: ClusterSnapshot) -> tuple[bool, str]:
    """Whether the environment's cluster is ready, and the text of the column WHY."""
    row = summarize(on_eks(), seen)["environments"][0]
    return row["cluster"]["ready"], why_environment(row, reasons(seen))


def test_status_reports_what_a_cloud_cluster_waits_for() -> None:
    nothing = ClusterSnapshot(core_ready=True)
    assert told(nothing) == (
        False,
        "not created on the core cluster yet: see the Application clusters",
    )
    seen = dataclasses.replace(
        nothing,
        resources=[
            resource("VPC", WELL),
            resource("NodeGroup", WAITS),
            resource("Cluster", DENIED),
        ],
    )
    assert told(seen) == (False, "Cluster demo-stage: CreateCluster: AccessDenied: not yours")


def test_only_failures_of_a_ready_cluster_are_reported() -> None:
    conditions = [
        {"type": type, "status": "True", "reason": "R", "message": "fine"}
        for type in ("Registered", "Reachable")
    ]
    owner = {"kind": "ClusterAuth", "namespace": "ucp-clusters", "name": "demo-stage"}
    note = {"owner": owner, "environment": "stage", "status": {"conditions": conditions}}
    seen = ClusterSnapshot(True, notes={"a": note}, resources=[resource("NodeGroup", SLOW)])
    assert told(seen)[0]
    assert reasons(seen) == {}
    failing = dataclasses.replace(seen, resources=[resource("NodeGroup", DENIED)])
    assert told(failing) == (True, "NodeGroup demo-stage: CreateCluster: AccessDenied: not yours")
    # The recorded status is as old as the reconciler's last run, also after a failed start.
    stopped = ComponentStatus("reconciler", "v1", False, "host", "not running")
    ready, why = told(dataclasses.replace(seen, components=[stopped]))
    assert not ready
    assert "the reconciler, which checks it, is not running" in why


@pytest.mark.parametrize(
    ("conditions", "severity", "next"),
    [
        (DENIED, "error", "write a credential with the permissions that the message names"),
        (CREATING, "info", "wait until it is created"),
        (
            ASYNC,
            "error",
            "kubectl --kubeconfig /w/core.yaml describe cluster.eks.aws.m.upbound.io demo-stage",
        ),
    ],
)
def test_doctor_reports_the_next_action_for_a_cloud_cluster(
    conditions: Conditions, severity: str, next: str
) -> None:
    seen = examined(environments=["stage"], resources=[resource("Cluster", conditions)])
    (found,) = findings(seen)
    assert (found.id, found.severity) == ("environment/stage", severity)
    assert found.next.startswith(next)


def claim(conditions: Conditions) -> Object:
    reference = {"apiVersion": "eks.aws.m.upbound.io/v1beta1", "kind": "Instance", "name": "db"}
    found: dict[str, Any] = resource("Postgres", conditions, "orders")
    found["metadata"]["labels"] = {}
    return {**found, "spec": {"crossplane": {"resourceRefs": [reference]}}}


UNREADY = {**WELL, "Ready": ("False", "Creating", "Unready resources: db")}


@pytest.mark.parametrize(
    ("conditions", "instance", "why", "findings_of"),
    [
        (WELL, WELL, None, 0),
        (UNREADY, WELL, "Unready resources: db", 0),
        (UNREADY, SLOW, "Instance db: CREATING", 0),
        (UNREADY, DENIED, "Instance db: CreateCluster: AccessDenied: not yours", 1),
        (DENIED, SLOW, "CreateCluster: AccessDenied: not yours", 1),
    ],
)
def test_a_claim_that_is_not_ready_is_reported_with_its_reason(
    conditions: Conditions, instance: Conditions, why: str | None, findings_of: int
) -> None:
    made = resource("Instance", instance, "db")
    made["metadata"]["labels"] = {}
    seen: dict[str, Any] = {"claims": [claim(conditions)], "resources": [made]}
    assert reasons(ClusterSnapshot(True, **seen)).get("claim Postgres ucp-clusters/orders") == why
    data = summarize(on_eks(), ClusterSnapshot(True, **seen))["claims"]
    ready = conditions is WELL
    named = {"name": "orders", "namespace": "ucp-clusters", "kind": "Postgres", "ready": ready}
    assert data == [named]
    assert len(findings(examined(**seen))) == findings_of
    name = "Postgres ucp-clusters/orders"
    state = ClaimState("ready" if ready else "waiting", why or "")
    assert claim_states(ClusterSnapshot(True, **seen), [name]) == {name: state}


def test_deleted_and_missing_claims_are_reported() -> None:
    leaving = claim(UNREADY)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    names = ["Postgres ucp-clusters/orders", "Postgres ucp-clusters/quotes"]
    found = claim_states(ClusterSnapshot(True, claims=[leaving]), names)
    assert [each.state for each in found.values()] == ["deleting", "missing"]
    assert found[names[0]].why == "Unready resources: db"


def test_claims_are_unknown_while_the_core_does_not_respond() -> None:
    (found,) = collect(None, ["Postgres team-a/orders"]).values()
    assert found == ClaimState("unknown", "the core cluster is not responding")
