"""Desired state and next action of a LocalCluster, and what its deletion waits for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterState
from k8s_ucp.reconciler.local_clusters.rules import (
    CannotCreate,
    Delete,
    Ensure,
    Foreign,
    NextAction,
    SecretState,
    classify,
    compare,
    deletion_blocker,
    kubeconfig_secret,
    next_action,
    owned,
    readiness,
)
from k8s_ucp.reconciler.runtime.settings import Settings
from tests.unit.reconciler.objects import NOW, Object, condition, config, local_cluster

PROVIDERS = {"embedded"}
GOING = {"deletionTimestamp": "2030-03-17T17:46:40Z", "finalizers": [names.FINALIZER]}


def settings() -> Settings:
    return Settings(kubeconfig=Path("core.yaml"), machine="here", topology="demo")


def test_the_spec_becomes_a_request_to_the_provider() -> None:
    item = local_cluster(spec={"version": "v1.35.4", "nodes": 3})
    verdict = classify(item, settings(), PROVIDERS)
    assert isinstance(verdict, Ensure)
    assert verdict.provider == "embedded"
    assert verdict.request.name == "demo-stage"
    assert verdict.request.version == "v1.35.4"
    assert verdict.request.parameters == {"nodes": "3"}


@pytest.mark.parametrize("metadata", [{}, GOING])
def test_a_local_cluster_of_another_machine_is_ignored(metadata: Object) -> None:
    item = local_cluster(spec={"machine": "elsewhere"}, metadata=metadata)
    assert classify(item, settings(), PROVIDERS) == Foreign()


@pytest.mark.parametrize("name", ["demo-core", "stage", "other-stage"])
def test_names_that_do_not_belong_to_an_environment_are_refused(name: str) -> None:
    verdict = classify(local_cluster(name), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)
    assert verdict.reason == "NameRefused"


def test_the_core_cluster_is_never_deleted_through_a_local_cluster() -> None:
    verdict = classify(local_cluster("demo-core", metadata=GOING), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)
    assert verdict.reason == "NameRefused"


def test_an_unavailable_provider_is_reported() -> None:
    verdict = classify(local_cluster(spec={"provider": "kind"}), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)
    assert "kind" in verdict.message
    assert "embedded" in verdict.message


def test_a_deleted_object_with_our_finalizer_deletes_its_cluster() -> None:
    assert classify(local_cluster(metadata=GOING), settings(), PROVIDERS) == Delete("embedded")


def test_a_deleted_object_without_our_finalizer_is_ignored() -> None:
    metadata = {**GOING, "finalizers": ["foregroundDeletion"]}
    assert classify(local_cluster(metadata=metadata), settings(), PROVIDERS) == Foreign()


def state(exists: bool = True, running: bool = True, ready: bool = True) -> ClusterState:
    return ClusterState("demo-stage", exists, running, ready, "" if ready else "etcd is down")


OBSERVED = {"observedGeneration": 1}


@pytest.mark.parametrize(
    ("seen", "status", "waited", "expected"),
    [
        (state(exists=False, running=False, ready=False), {}, 0, NextAction.CREATE),
        (state(running=False, ready=False), OBSERVED, 0, NextAction.CREATE),
        (state(), {}, 0, NextAction.CREATE),
        (state(), {"observedGeneration": 0}, 0, NextAction.CREATE),
        (state(), OBSERVED, 0, NextAction.NOTHING),
        (replace(state(), outdated=True), OBSERVED, 0, NextAction.CREATE),
        (state(ready=False), OBSERVED, 5, NextAction.WAIT),
        (state(ready=False), OBSERVED, 25, NextAction.CREATE),
    ],
)
def test_the_next_action_depends_on_the_state_of_the_control_plane(
    seen: ClusterState, status: Object, waited: float, expected: NextAction
) -> None:
    item = local_cluster(status=status)
    assert next_action(item, seen, done=0, waited=waited, patience=20) is expected


def test_a_created_cluster_is_not_created_again_before_its_status_is_written() -> None:
    assert (
        next_action(local_cluster(), state(), done=1, waited=0, patience=20) is NextAction.NOTHING
    )


def test_the_ready_condition_contains_the_providers_reason() -> None:
    assert readiness(state()).status == "True"
    assert readiness(state(ready=False)).message == "etcd is down"


def secret(owner: Object | None = None) -> Object:
    return kubeconfig_secret(owner or local_cluster(), config(), "v1.35.4")


def test_the_kubeconfig_secret_is_owned_by_its_cluster() -> None:
    owner = secret()["metadata"]["ownerReferences"][0]
    assert owner["controller"]
    assert (owner["kind"], owner["uid"]) == ("LocalCluster", "uid-of-demo-stage")


def test_the_same_kubeconfig_gives_the_same_secret() -> None:
    assert secret() == secret()


def test_only_ucps_fields_of_a_secret_are_compared() -> None:
    wanted = secret()
    assert compare(None, wanted) is SecretState.ABSENT
    assert compare(wanted, wanted) is SecretState.CURRENT
    more = secret()
    more["metadata"]["labels"]["someone"] = "else"
    assert compare(more, wanted) is SecretState.CURRENT
    other = secret()
    other["data"] = {"kubeconfig": ""}
    assert compare(other, wanted) is SecretState.OUTDATED
    former = secret(local_cluster(uid="another life"))
    assert compare(former, wanted) is SecretState.OUTDATED


@pytest.mark.parametrize("part", ["labels", "ownerReferences"])
def test_a_secret_without_our_label_or_owner_reference_is_foreign(part: str) -> None:
    stranger = secret()
    del stranger["metadata"][part]
    assert compare(stranger, secret()) is SecretState.FOREIGN
    assert not owned(stranger, "demo-stage")


def test_a_secret_of_another_cluster_is_not_owned() -> None:
    assert not owned(secret(local_cluster("demo-prod")), "demo-stage")


def leaving(*conditions: Object) -> Object:
    from k8s_ucp.timestamps import stamp

    going = {**GOING, "deletionTimestamp": stamp(NOW)}
    return local_cluster(metadata=going, status={"conditions": list(conditions)})


@pytest.mark.parametrize(
    ("item", "registered", "holding", "after", "waits"),
    [
        (leaving(), True, [], 1, True),
        (leaving(condition("Drained", "False")), True, [], 1, True),
        (leaving(condition("Drained", "True")), True, [], 1, False),
        (leaving(), False, [], 1, False),
        (leaving(condition("Drained", "True")), True, ["PersistentVolume a"], 1, True),
        (leaving(), True, ["PersistentVolume a"], 121, False),
    ],
)
def test_a_deletion_waits_for_the_drain_and_for_volumes(
    item: Object, registered: bool, holding: list[str], after: float, waits: bool
) -> None:
    hold = deletion_blocker(item, registered=registered, holding=holding, waited=after, limit=120)
    assert (hold is not None) is waits
    if hold:
        assert hold.status == "False"
        assert all(each in hold.message for each in holding)


@given(
    st.booleans(),
    st.lists(st.text(max_size=5), max_size=3),
    st.sampled_from(["True", "False", "Unknown"]),
    st.floats(min_value=121, max_value=1e6),
)
def test_no_deletion_waits_longer_than_the_limit(
    registered: bool, holding: list[str], drained: str, after: float
) -> None:
    item = leaving(condition("Drained", drained))
    assert (
        deletion_blocker(item, registered=registered, holding=holding, waited=after, limit=120)
        is None
    )


def test_the_deletion_of_a_lost_cluster_waits_for_nothing() -> None:
    blocker = deletion_blocker(
        leaving(), registered=True, holding=[], waited=1, limit=120, lost=True
    )
    assert blocker is None
