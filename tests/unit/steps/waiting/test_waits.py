"""Steps that wait: what they wait for, depending on the objects they find."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ClusterState
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.applications import kept
from k8s_ucp.inspect.resource_conditions import Cause
from k8s_ucp.steps.waiting import argocd_refresh, await_applications, await_environments


def cluster(environment: str, **conditions: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"demo-{environment}",
            "labels": {"k8s-ucp.io/environment": environment},
        },
        "status": {
            "conditions": [
                {"type": kind, "status": status, "message": f"{kind} says {status}"}
                for kind, status in conditions.items()
            ]
        },
    }


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], ["stage: not declared yet"]),
        ([cluster("prod", Ready="True", Registered="True")], ["stage: not declared yet"]),
        ([cluster("stage")], ["stage: not ready yet"]),
        ([cluster("stage", Ready="False")], ["stage: Ready says False"]),
        ([cluster("stage", Ready="True")], ["stage: not registered yet"]),
        ([cluster("stage", Ready="True", Registered="False")], ["stage: Registered says False"]),
        ([cluster("stage", Ready="True", Registered="True")], []),
    ],
)
def test_environments_are_waited_for_until_ready_and_registered(
    items: list[dict[str, Any]], expected: list[str]
) -> None:
    assert await_environments.not_yet(["stage"], items) == expected


def test_a_cluster_that_cannot_be_started_until_somebody_acts_is_not_waited_for() -> None:
    obstacle = UcpError("port 1 is already in use", next="stop it: kill 7")
    states: dict[str, UcpError | None] = {"demo-stage": obstacle, "demo-prod": obstacle}

    class Provider:
        def state(self, name: str) -> ClusterState:
            return ClusterState(
                name, True, running=False, ready=False, message="", obstacle=states[name]
            )

    providers: Any = {"here": Provider()}
    items = [cluster("stage", Ready="False"), cluster("prod", Ready="False")]
    for each in items:
        each["spec"] = {"provider": "here"}
        each["status"]["conditions"][0]["reason"] = "CreateFailed"
    with pytest.raises(UcpError, match="port 1 is already in use"):
        await_environments.refuse_obstacles(["stage"], items, providers)
    # The condition is an earlier start's: the port is free now.
    states["demo-stage"] = None
    await_environments.refuse_obstacles(["stage"], items, providers)
    # Its programs are being started.
    states["demo-stage"] = obstacle
    items[0]["status"]["conditions"][0]["reason"] = "Starting"
    await_environments.refuse_obstacles(["stage"], items, providers)


def test_cloud_environments_are_waited_for_until_registered_with_argo_cd() -> None:
    secrets = [{"metadata": {"labels": {"k8s-ucp.io/environment": "prod"}}}, {"metadata": {}}]
    assert await_environments.unregistered(["stage", "prod"], secrets) == [
        "stage: being created, not registered yet"
    ]
    cause = Cause({"kind": "Cluster", "metadata": {"name": "demo"}}, "AccessDenied", failed=True)
    assert await_environments.unregistered(["stage"], [], lambda: {"stage": cause}) == [
        "stage: being created, not registered yet (Cluster demo: AccessDenied)"
    ]


def application(
    name: str, sync: str | None = "Synced", health: str | None = "Healthy", **status: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {"sync": {"status": sync}, "health": {"status": health}, **status},
    }


def test_expected_applications_are_waited_for_until_created() -> None:
    assert await_applications.not_yet(["echo-stage"], []) == ["echo-stage: not created yet"]


def test_folders_that_argo_cd_does_not_deploy_are_not_waited_for() -> None:
    apps = ("echo", "-dash", "platform-traefik")
    paths = [f"apps/{each}/overlays/stage/kustomization.yaml" for each in apps]
    assert await_applications.expected(paths, ["stage"]) == ["echo-stage"]


def test_unexpected_applications_are_waited_for_too() -> None:
    items = [application("echo-stage"), application("root", "OutOfSync", None)]
    assert await_applications.not_yet(["echo-stage"], items) == ["root: OutOfSync, Unknown"]


def test_a_failed_application_is_reported_with_its_reason() -> None:
    broken = application(
        "a",
        "Unknown",
        "Healthy",
        conditions=[{"type": "ComparisonError", "message": "no such repository"}],
        operationState={"phase": "Failed", "message": "one object is wrong"},
    )
    assert await_applications.not_yet([], [broken]) == ["a: Unknown, Healthy (no such repository)"]
    del broken["status"]["conditions"]
    assert await_applications.not_yet([], [broken]) == ["a: Unknown, Healthy (one object is wrong)"]


def differing(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Namespace", "name": name, "status": "OutOfSync", **more}


def test_objects_protected_from_pruning_are_not_waited_for() -> None:
    """The status that Argo CD reports for an object with Prune=false."""
    skipped = {"group": "", "kind": "Namespace", "namespace": "", "name": "data"}
    resources = [{"kind": "ConfigMap", "name": "a", "status": "Synced"}]
    item = application(
        "mirrors",
        "OutOfSync",
        resources=[*resources, differing("data", requiresPruning=True)],
        operationState={"syncResult": {"resources": [{**skipped, "status": "PruneSkipped"}]}},
    )
    assert kept(item) == ["Namespace data"]
    assert await_applications.not_yet([], [item]) == []
    # Another object differs, is being pruned, or is unhealthy.
    for resource in (differing("other"), differing("going", requiresPruning=True)):
        other = {**item, "status": {**item["status"]}}
        other["status"]["resources"] = [*item["status"]["resources"], resource]
        (said,) = await_applications.not_yet([], [other])
        assert said.startswith("mirrors: OutOfSync, Healthy (out of sync with git: ")
    item["status"]["health"]["status"] = "Degraded"
    assert await_applications.not_yet([], [item]) == ["mirrors: OutOfSync, Degraded"]


def test_status_from_before_a_restart_is_ignored() -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC).timestamp()
    old = application("a", reconciledAt="2026-01-02T03:04:04Z")
    new = application("b", reconciledAt="2026-01-02T03:04:05Z")
    assert await_applications.not_yet([], [old, new], since=started) == [
        "a: not refreshed since the start"
    ]
    assert await_applications.not_yet([], [old, new]) == []
    assert await_applications.not_yet([], [application("c")], since=started)


def test_applications_with_an_outdated_or_unknown_status_are_refreshed() -> None:
    started = datetime(2026, 1, 1, 12, 0, 0, 500, UTC).timestamp()
    late = "2026-01-01T12:00:01Z"
    items = [
        application("compared", reconciledAt=late),
        application("before", reconciledAt="2026-01-01T11:59:59Z"),
        application("no-cluster", "Unknown", reconciledAt=late),
        application("syncing", "OutOfSync", reconciledAt=late),
    ]

    def asked_at(now: float, asked: dict[str, float]) -> list[str]:
        return argocd_refresh.unanswered(items, asked, since=started, now=now)

    assert asked_at(10.0, {}) == ["before", "no-cluster"]
    assert asked_at(11.0, {"before": 10.0, "no-cluster": 10.0}) == []
    assert asked_at(12.0, {"before": 10.0, "no-cluster": 11.0}) == ["before"]


def test_applications_compared_with_an_older_commit_are_refreshed() -> None:
    """Such an Application is still Synced, although a new database in git does not exist yet."""
    core, apps = "file:///gitops/demo/core.git", "file:///gitops/demo/apps.git"

    def compared(name: str, url: str, revision: str) -> dict[str, Any]:
        item = application(name, reconciledAt="2026-01-01T12:00:01Z")
        item["spec"] = {"source": {"repoURL": url, "path": name}}
        item["status"]["sync"]["revision"] = revision
        return item

    items = [
        compared("root", core, "old"),
        compared("databases", core, "new"),
        compared("echo-stage", apps, "old"),
    ]
    found = argocd_refresh.find_behind(items, core, lambda revision: revision == "old")
    assert found == ["root"]
    assert argocd_refresh.unanswered(items, {}, since=0, now=9.0, behind=found) == ["root"]
    assert argocd_refresh.unanswered(items, {"root": 8.0}, since=0, now=9.0, behind=found) == []


def test_failed_application_sets_are_refreshed() -> None:
    def applications(status: str) -> dict[str, Any]:
        conditions = [{"type": "ErrorOccurred", "status": status}]
        return {"metadata": {"name": "applications"}, "status": {"conditions": conditions}}

    new = {"metadata": {"name": "new"}}
    assert argocd_refresh.failed_sets([applications("True"), new]) == ["applications"]
    assert argocd_refresh.failed_sets([applications("False"), new]) == []


def test_a_completed_start_refreshes_nothing() -> None:
    items = [application("a", reconciledAt="2026-01-01T11:59:59Z")]
    assert argocd_refresh.unanswered(items, {}, since=0, now=100.0) == []


def test_an_application_is_expected_for_each_overlay_of_a_running_environment() -> None:
    paths = [
        "README.md",
        "apps/echo/base/deployment.yaml",
        "apps/echo/overlays/stage/kustomization.yaml",
        "apps/echo/overlays/stage/hosts.yaml",
        "apps/echo/overlays/prod/kustomization.yaml",
        "apps/quote/overlays/gone/kustomization.yaml",
        "other/apps/x/overlays/stage/kustomization.yaml",
    ]
    assert await_applications.expected(paths, ["stage", "prod"]) == ["echo-prod", "echo-stage"]
    assert await_applications.expected(paths, []) == []
