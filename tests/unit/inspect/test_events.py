"""Events of several clusters: order, app and environment of each, and filters."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.inspect.events import EventScope, Filter, merged, newest
from tests.unit.inspect.snapshots import TOPOLOGY


def event(kind: str, name: str, namespace: str = "", **parts: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name, "namespace": namespace}
    created = {"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": created, "involvedObject": about, "message": "", **parts}


SCOPE = EventScope.of(
    TOPOLOGY,
    [{"metadata": {"name": "demo-lab", "labels": {"k8s-ucp.io/environment": "lab"}}}],
    [
        {
            "metadata": {
                "name": "shop-lab",
                "labels": {"k8s-ucp.io/app": "shop", "k8s-ucp.io/environment": "lab"},
            }
        }
    ],
)


@pytest.mark.parametrize(
    ("cluster", "about", "app", "environment"),
    [
        ("demo-core", ("Application", "echo-stage", "argocd"), "echo", "stage"),
        ("demo-core", ("Application", "shop-lab", "argocd"), "shop", "lab"),
        ("demo-core", ("Application", "root", "argocd"), None, None),
        ("demo-core", ("LocalCluster", "demo-prod", "ucp-clusters"), None, "prod"),
        ("demo-core", ("Secret", "demo-prod-kubeconfig", "ucp-clusters"), None, "prod"),
        ("demo-core", ("Secret", "demo-production", "ucp-clusters"), None, None),
        ("demo-prod", ("Pod", "echo-abc", "echo"), "echo", "prod"),
        ("demo-lab", ("Node", "node-0", ""), None, "lab"),
    ],
)
def test_app_and_environment_of_an_event_are_found(
    cluster: str, about: tuple[str, str, str], app: str | None, environment: str | None
) -> None:
    line = SCOPE.line(cluster, event(*about))
    assert (line["cluster"], line["app"], line["environment"]) == (cluster, app, environment)


def test_names_of_apps_and_environments_that_do_not_exist_are_refused() -> None:
    for app, environment in (("echo", "stage"), ("shop", "lab"), ("", "")):
        SCOPE.check(app, environment)
    with pytest.raises(UsageError, match="unknown app 'ecco'; available: echo, shop"):
        SCOPE.check("ecco", "stage")
    with pytest.raises(UsageError, match="unknown environment 'qa'; available: lab, prod, stage"):
        SCOPE.check("", "qa")


def test_events_with_different_timestamp_fields_are_sorted_by_time() -> None:
    lines = [
        SCOPE.line("demo-core", event("Pod", "third", lastTimestamp="2026-01-01T10:00:02Z")),
        SCOPE.line("demo-prod", event("Pod", "first", eventTime="2026-01-01T10:00:01.500000Z")),
        SCOPE.line("demo-stage", event("Pod", "oldest")),
        SCOPE.line(
            "demo-stage",
            event(
                "Pod",
                "second",
                eventTime="2026-01-01T09:00:00.000000Z",
                series={"count": 7, "lastObservedTime": "2026-01-01T10:00:01.900000Z"},
            ),
        ),
    ]
    kept = merged(lines, 3)
    assert [each["about"] for each in kept] == ["Pod /first", "Pod /second", "Pod /third"]
    assert [each["count"] for each in kept] == [1, 7, 1]


def test_events_of_the_same_second_keep_their_order() -> None:
    stamp = "2026-01-01T00:00:00Z"
    events = [event("Application", "echo", lastTimestamp=stamp, message=str(n)) for n in range(5)]
    lines = [SCOPE.line("demo-core", each) for each in events]
    assert [each["message"] for each in merged(lines, 3)] == ["2", "3", "4"]
    assert merged(lines, 0) == []


def test_the_newest_events_are_kept() -> None:
    events = [event("Pod", str(n), lastTimestamp=f"2026-01-01T00:00:0{n}Z") for n in range(5)]
    assert [each["involvedObject"]["name"] for each in newest(events, 2)] == ["4", "3"]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (Filter(), True),
        (Filter(app="echo", environment="prod"), True),
        (Filter(app="quote"), False),
        (Filter(environment="stage"), False),
        (Filter(object="echo-abc"), True),
        (Filter(object="pod/echo-abc"), True),
        (Filter(object="echo/echo-abc"), True),
        (Filter(object="Pod/echo/echo-abc"), True),
        (Filter(object="echo"), False),
        (Filter(object="Node/echo-abc"), False),
    ],
)
def test_events_are_filtered_by_app_environment_and_object(wanted: Filter, kept: bool) -> None:
    line = SCOPE.line("demo-prod", event("Pod", "echo-abc", "echo"))
    assert wanted.keeps(line) is kept


def test_an_object_without_namespace_is_found_by_its_kind() -> None:
    line = SCOPE.line("demo-prod", event("Node", "node-0"))
    assert Filter(object="Node/node-0").keeps(line)


def test_secrets_in_event_messages_are_redacted() -> None:
    found = event("Pod", "p") | {"message": "GET https://user:hunter2@example.org failed"}
    assert "hunter2" not in SCOPE.line("demo-core", found)["message"]
