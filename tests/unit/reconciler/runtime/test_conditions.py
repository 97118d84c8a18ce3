"""Transition times of conditions, renewal times of tokens, log lines, and RBAC of identities."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp import names
from k8s_ucp.reconciler.access import service_accounts
from k8s_ucp.reconciler.access.owners import same_but_status
from k8s_ucp.reconciler.access.tokens import JITTER, renewal_time
from k8s_ucp.reconciler.runtime.conditions import MESSAGE_LIMIT, Condition, find, is_true, written
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.timestamps import parse_stamp, stamp
from tests.unit.reconciler.objects import condition, local_cluster, source

BEFORE = "2029-01-01T00:00:00Z"


@pytest.mark.parametrize(("status", "since"), [("True", BEFORE), ("False", "now")])
def test_the_transition_time_changes_only_with_the_status(status: str, since: str) -> None:
    item = local_cluster(status={"conditions": [condition("Ready", "True", "Old")]})
    found = written(item, [Condition("Ready", status, "New", "other words")], "now")
    assert found[0]["lastTransitionTime"] == since
    assert (found[0]["reason"], found[0]["message"]) == ("New", "other words")


def test_long_messages_are_truncated() -> None:
    found = written(local_cluster(), [Condition("Ready", "True", "R", "x" * 99_999)], "now")
    assert len(found[0]["message"]) == MESSAGE_LIMIT


def test_messages_of_every_controller_are_without_credentials() -> None:
    said = "GET https://me:hunter2@example.org/x: 403 for Bearer hunter2"
    found = written(local_cluster(), [Condition("Ready", "False", "CreateFailed", said)], "now")
    assert "hunter2" not in found[0]["message"]
    assert found[0]["message"].startswith("GET https://…@example.org/x: 403")


def test_conditions_are_found_by_type() -> None:
    item = local_cluster(status={"conditions": [condition("Ready", "False")]})
    assert find(item, "Ready") is not None
    assert find(item, "Registered") is None
    assert not is_true(item, "Ready")
    assert not is_true(local_cluster(), "Ready")


def test_status_changes_trigger_a_controller_only_for_watched_conditions() -> None:
    ready = local_cluster(status={"conditions": [condition("Ready", "True")]})
    drained = local_cluster(status={"conditions": [condition("Drained", "True")]})
    assert same_but_status(local_cluster(), ready)
    assert not same_but_status(local_cluster(), drained, watched=("Drained",))
    assert not same_but_status(local_cluster(), local_cluster(labels={"a": "b"}))
    assert not same_but_status(local_cluster(), local_cluster(metadata={"generation": 2}))
    assert not same_but_status(None, local_cluster())
    assert not same_but_status(local_cluster(), None)


@given(
    st.floats(min_value=0, max_value=4e9),
    st.integers(min_value=600, max_value=10_000_000),
)
def test_a_token_is_renewed_within_its_lifetime(issued: float, lifetime: int) -> None:
    due = renewal_time(stamp(issued), stamp(issued + lifetime), "demo-stage")
    assert issued - 1 <= due <= issued + lifetime
    assert lifetime * (2 / 3 - JITTER) - 2 <= due - issued <= lifetime * 2 / 3 + 2


def test_tokens_of_clusters_registered_together_are_renewed_at_different_times() -> None:
    due = {renewal_time(BEFORE, stamp(4_000_000_000), f"demo-{each}") for each in range(10)}
    assert len(due) == 10


@pytest.mark.parametrize(
    ("issued", "expires"),
    [(None, BEFORE), (BEFORE, None), ("soon", "later"), (BEFORE, BEFORE)],
)
def test_a_token_of_unknown_age_is_due_for_renewal(issued: str | None, expires: str | None) -> None:
    assert renewal_time(issued, expires, "demo-stage") == 0


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_timestamps_are_parsed_back_unchanged(seconds: int) -> None:
    assert parse_stamp(stamp(seconds)) == seconds


def test_log_lines_are_json_and_contain_no_credential() -> None:
    stream = io.StringIO()
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    log = Log(stream, clock=lambda: 0)
    log.info("one", text=f"Bearer {token}", number=1)
    log.error(f"two {token}", trace="-----BEGIN RSA" + " PRIVATE KEY----- abc")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["info", "error"]
    assert lines[0]["time"] == "1970-01-01T00:00:00Z"
    assert token not in stream.getvalue()
    assert "abc" not in stream.getvalue()


def test_argo_cd_gets_cluster_admin_and_the_mirror_identity_no_permissions() -> None:
    objects = service_accounts.desired_objects(source())
    assert [each["kind"] for each in objects] == [
        "ServiceAccount",
        "ServiceAccount",
        "ClusterRoleBinding",
    ]
    binding = objects[-1]
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert [each["name"] for each in binding["subjects"]] == [names.ARGOCD_IDENTITY]


def test_scoped_access_has_no_permissions_outside_its_namespaces() -> None:
    owner = local_cluster(
        labels={names.ACCESS: "scoped"}, annotations={names.NAMESPACES: "echo,quote"}
    )
    objects = service_accounts.desired_objects(source(owner))
    assert not [each for each in objects if each["kind"].startswith("Cluster")]
    bound = [each["metadata"]["namespace"] for each in objects if each["kind"] == "RoleBinding"]
    assert bound == ["echo", "quote"]
