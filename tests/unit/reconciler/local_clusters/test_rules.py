"""What a LocalCluster asks for, and what its deletion waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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


def settings(tmp: Any = None) -> Settings:
    from pathlib import Path

    return Settings(kubeconfig=Path("core.yaml"), machine="here", topology="demo")


def test_what_it_wants_is_handed_to_the_provider() -> None:
    item = local_cluster(spec={"version": "v1.35.4", "nodes": 3})
    verdict = classify(item, settings(), PROVIDERS)
    assert isinstance(verdict, Ensure)
    assert verdict.provider == "embedded"
    assert verdict.request.name == "demo-stage"
    assert verdict.request.version == "v1.35.4"
    assert verdict.request.parameters == {"nodes": "3"}


@pytest.mark.parametrize("metadata", [{}, GOING])
def test_another_machine_s_is_not_touched(metadata: Object) -> None:
    item = local_cluster(spec={"machine": "elsewhere"}, metadata=metadata)
    assert classify(item, settings(), PROVIDERS) == Foreign()


@pytest.mark.parametrize("name", ["demo-core", "stage", "other-stage"])
def test_names_that_are_not_an_environment_s_are_refused(name: str) -> None:
    verdict = classify(local_cluster(name), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)
    assert verdict.reason == "NameRefused"


def test_the_core_cluster_is_never_deleted_by_a_declaration() -> None:
    verdict = classify(local_cluster("demo-core", metadata=GOING), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)


def test_a_provider_that_is_not_here_is_named() -> None:
    verdict = classify(local_cluster(spec={"provider": "kind"}), settings(), PROVIDERS)
    assert isinstance(verdict, CannotCreate)
    assert "kind" in verdict.message
    assert "embedded" in verdict.message


def test_going_with_our_finalizer_waits_for_us() -> None:
    assert classify(local_cluster(metadata=GOING), settings(), PROVIDERS) == Delete("embedded")


def test_going_without_our_finalizer_never_was_ours() -> None:
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
def test_what_the_control_plane_needs(
    seen: ClusterState, status: Object, waited: float, expected: NextAction
) -> None:
    item = local_cluster(status=status)
    assert next_action(item, seen, done=0, waited=waited, patience=20) is expected


def test_what_was_just_made_is_not_made_again_before_the_status_shows() -> None:
    assert (
        next_action(local_cluster(), state(), done=1, waited=0, patience=20) is NextAction.NOTHING
    )


def test_readiness_tells_the_provider_s_reason() -> None:
    assert readiness(state()).status == "True"
    assert readiness(state(ready=False)).message == "etcd is down"


def secret(owner: Object | None = None) -> Object:
    return kubeconfig_secret(owner or local_cluster(), config(), "v1.35.4")


def test_the_secret_goes_with_its_cluster() -> None:
    owner = secret()["metadata"]["ownerReferences"][0]
    assert owner["controller"]
    assert (owner["kind"], owner["uid"]) == ("LocalCluster", "uid-of-demo-stage")


def test_the_same_kubeconfig_gives_the_same_secret() -> None:
    assert secret() == secret()


def test_a_secret_is_compared_by_what_is_ours() -> None:
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
def test_somebody_else_s_secret_is_foreign(part: str) -> None:
    stranger = secret()
    del stranger["metadata"][part]
    assert compare(stranger, secret()) is SecretState.FOREIGN
    assert not owned(stranger, "demo-stage")


def test_a_secret_of_another_cluster_is_not_ours() -> None:
    assert not owned(secret(local_cluster("demo-prod")), "demo-stage")


def leaving(*conditions: Object) -> Object:
    from k8s_ucp.reconciler.runtime.clock import stamp

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
def test_what_a_deletion_waits_for(
    item: Object, registered: bool, holding: list[str], after: float, waits: bool
) -> None:
    hold = deletion_blocker(
        item, registered=registered, holding=holding, now=NOW + after, limit=120
    )
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
def test_no_deletion_hangs(
    registered: bool, holding: list[str], drained: str, after: float
) -> None:
    item = leaving(condition("Drained", drained))
    assert (
        deletion_blocker(item, registered=registered, holding=holding, now=NOW + after, limit=120)
        is None
    )
