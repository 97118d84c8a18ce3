"""Every rule of registration: which clusters are registered, kept, refused, deregistered."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp import names
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.sources import Fate, describe
from k8s_ucp.reconciler.registration.rules import (
    Deregister,
    Keep,
    NoAction,
    Observation,
    Refuse,
    Register,
    Relabel,
    Reserved,
    decide,
    why_give_up,
)
from k8s_ucp.reconciler.runtime.settings import Settings
from tests.unit.reconciler.objects import (
    NOW,
    auth_info,
    cluster_secret,
    config,
    local_cluster,
    registration,
    source,
)
from tests.unit.reconciler.registration.observations import seen


def foreign(**changes: Any) -> Registration:
    """A cluster Secret of the same name that a person created."""
    secret = cluster_secret(source())
    del secret["metadata"]["labels"][names.MANAGED_BY]
    secret["metadata"]["annotations"] = {}
    return replace(Registration.of(secret), **changes)


def test_a_new_source_is_registered() -> None:
    decision = decide(seen())
    assert isinstance(decision, Register)
    assert decision.existing is None


def test_an_unchanged_registration_is_kept() -> None:
    one = source()
    assert decide(seen(source=one, existing=registration(one))) == Keep(
        one, auth_info(one), registration(one)
    )


@pytest.mark.parametrize(
    ("part", "expected"), [(0.5, Keep), (0.63, Keep), (0.67, Register), (1.5, Register)]
)
def test_a_token_is_renewed_after_two_thirds_of_its_lifetime(part: float, expected: type) -> None:
    one = source()
    existing = registration(one, lifetime=3600)
    decision = decide(seen(source=one, existing=existing, now=NOW + part * 3600))
    assert isinstance(decision, expected)


def test_a_registration_without_token_times_gets_a_new_token() -> None:
    one = source()
    secret = cluster_secret(one)
    del secret["metadata"]["annotations"][names.TOKEN_EXPIRES]
    assert isinstance(decide(seen(source=one, existing=Registration.of(secret))), Register)


@pytest.mark.parametrize(
    "change",
    [
        {"content": config("https://127.0.0.1:7777")},
        {"owner": local_cluster(uid="another life")},
        {
            "owner": local_cluster(
                annotations={names.NAMESPACES: "echo"}, labels={names.ACCESS: "scoped"}
            )
        },
    ],
)
def test_changed_access_is_registered_again(change: dict[str, Any]) -> None:
    decision = decide(seen(source=source(**change), existing=registration(source())))
    assert isinstance(decision, Register)
    assert decision.existing is not None


@pytest.mark.parametrize(
    "labels",
    [{names.PROTECTED: "true"}, {names.REGION: "eu"}],
)
def test_changed_cluster_info_only_changes_labels(labels: dict[str, str]) -> None:
    one = source(local_cluster(labels=labels))
    assert isinstance(decide(seen(source=one, existing=registration(source()))), Relabel)


def refused(**changes: Any) -> Refuse:
    decision = decide(seen(**changes))
    assert isinstance(decision, Refuse)
    return decision


def test_an_owner_without_an_environment_is_refused() -> None:
    owner = local_cluster()
    del owner["metadata"]["labels"][names.ENVIRONMENT]
    assert refused(source=source(owner)).reason == "EnvironmentMissing"


def test_an_unknown_environment_is_refused() -> None:
    decision = refused(environments=frozenset({"prod"}))
    assert decision.reason == "EnvironmentUnknown"
    assert "prod" in decision.message
    assert not decision.standing


def test_an_environment_held_by_another_cluster_is_refused() -> None:
    decision = refused(holders={"stage": "other-stage"})
    assert (decision.reason, decision.standing) == ("EnvironmentTaken", False)
    assert "other-stage" in decision.message


def test_a_foreign_cluster_secret_of_the_same_name_is_not_changed() -> None:
    decision = refused(existing=foreign())
    assert (decision.reason, decision.standing) == ("NameTaken", False)


def test_a_registration_of_the_same_name_from_another_source_is_not_changed() -> None:
    existing = replace(registration(source()), source="crossplane-system/another")
    assert refused(existing=existing).reason == "NameTaken"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source": None, "auth_info": None}, "KubeconfigMissing"),
        ({"auth_info": NoAccess("KubeconfigInvalid", "not a mapping")}, "KubeconfigInvalid"),
        ({"source": source(local_cluster(labels={names.ACCESS: "scoped"}))}, "NamespacesMissing"),
    ],
)
def test_a_source_that_became_invalid_keeps_its_registration(
    changes: dict[str, Any], reason: str
) -> None:
    decision = refused(**changes, existing=registration(source()))
    assert (decision.reason, decision.standing) == (reason, True)


def test_a_cluster_of_an_environment_removed_from_the_list_is_not_deregistered() -> None:
    one = source()
    decision = decide(seen(source=one, existing=registration(one), environments=frozenset()))
    assert isinstance(decision, Keep)


@pytest.mark.parametrize(("fate", "gone"), [(Fate.DELETING, False), (Fate.GONE, True)])
@pytest.mark.parametrize("with_secret", [True, False])
def test_a_source_that_is_deleted_or_being_deleted_is_deregistered(
    fate: Fate, gone: bool, with_secret: bool
) -> None:
    one = source()
    changes: dict[str, Any] = {} if with_secret else {"source": None, "auth_info": None}
    decision = decide(seen(**changes, fate=fate, existing=registration(one)))
    assert decision == Deregister(registration(one), owner_deleted=gone)


SETTINGS = Settings(kubeconfig=None, machine="here", topology="demo")


def leave(owner: str = "LocalCluster", **changes: Any) -> Deregister:
    one = registration(source())
    assert one.owner
    existing = replace(one, owner=replace(one.owner, kind=owner))
    return Deregister(existing, **{"owner_deleted": False, **changes})


def test_a_drain_waits_five_minutes_for_a_cluster_that_does_not_respond() -> None:
    """Deregistered without a drain, it would leave load balancers and volumes behind."""
    for silent in (0.5, 11.0, 120.0, 299.0):
        assert why_give_up(leave(), SETTINGS, since=1000.0, silent=silent) is None
    assert why_give_up(leave(), SETTINGS, since=1000.0, silent=301.0) == (
        "the cluster has not responded for 300 s"
    )


def test_a_drain_on_a_responding_cluster_has_its_own_time_limit() -> None:
    assert why_give_up(leave(), SETTINGS, since=119.0, silent=0.0) is None
    assert why_give_up(leave(), SETTINGS, since=121.0, silent=0.0) == "not drained within 120 s"


@pytest.mark.parametrize(
    ("decision", "dead"),
    [
        (leave(owner_deleted=True), True),
        (leave("Cluster", owner_deleted=True), True),
        (leave(forgotten=True, owner_deleted=True), True),
        (leave("Secret", forgotten=True, owner_deleted=True), True),
        (leave("Secret", owner_deleted=True), False),
        (leave(), False),
    ],
)
def test_a_drain_does_not_wait_for_a_cluster_known_to_be_deleted(
    decision: Deregister, dead: bool
) -> None:
    """The deletion of a kubeconfig by a person does not prove that its cluster is deleted."""
    assert (why_give_up(decision, SETTINGS, since=20.0, silent=11.0) is not None) is dead


def test_a_forgotten_cluster_is_deregistered_without_waiting() -> None:
    decision = decide(seen(existing=registration(source()), forgotten=True))
    assert isinstance(decision, Deregister)
    assert decision.is_known_dead


def test_a_source_deleted_before_its_registration_needs_no_action() -> None:
    assert decide(seen(fate=Fate.DELETING)) == NoAction()
    assert decide(seen(fate=Fate.GONE, existing=foreign())) == NoAction()


def test_a_cluster_moved_to_another_environment_is_registered_again() -> None:
    """The objects that confine its apps on the cluster have the environment's name."""
    one = source(local_cluster(labels={names.ENVIRONMENT: "prod"}))
    decision = decide(seen(source=one, existing=registration(source())))
    assert isinstance(decision, Register)
    assert decision.why == "environment changed"


def test_the_labels_of_an_existing_source_are_restored_after_a_manual_drain() -> None:
    one = source()
    secret = cluster_secret(one)
    labels = secret["metadata"]["labels"]
    labels[names.DRAINING] = labels.pop(names.ENVIRONMENT)
    assert isinstance(decide(seen(source=one, existing=Registration.of(secret))), Relabel)


SOURCES = st.builds(
    lambda environment, access, namespaces, uid: source(
        local_cluster(
            uid=uid,
            labels={names.ENVIRONMENT: environment, names.ACCESS: access},
            annotations={names.NAMESPACES: namespaces},
        )
    ),
    st.sampled_from(["stage", "prod", "eu"]),
    st.sampled_from(["admin", "scoped"]),
    st.sampled_from(["", "echo", "echo,quote"]),
    st.sampled_from(["uid-of-demo-stage", "another life"]),
)
EXISTING = st.one_of(
    st.none(),
    st.builds(foreign),
    st.builds(
        lambda one, key, lifetime: replace(registration(one, lifetime=lifetime), source=key),
        SOURCES,
        st.sampled_from(["ucp-clusters/demo-stage-kubeconfig", "crossplane-system/other"]),
        st.sampled_from([600, 86_400]),
    ),
)


@st.composite
def situations(draw: st.DrawFn) -> Observation:
    one = draw(st.none() | SOURCES)
    broken = draw(st.booleans())
    return Observation(
        fate=draw(st.sampled_from(Fate)),
        source=one,
        auth_info=None
        if one is None
        else NoAccess("Reason", "words")
        if broken
        else auth_info(one),
        environments=frozenset(draw(st.sets(st.sampled_from(["stage", "prod", "eu"])))),
        holders=draw(st.dictionaries(st.sampled_from(["stage", "prod"]), st.just("other"))),
        existing=draw(EXISTING),
        now=NOW + draw(st.floats(min_value=0, max_value=200_000)),
    )


@given(situations())
def test_a_foreign_secret_is_never_changed(one: Observation) -> None:
    existing = one.existing
    stranger = existing is not None and not (
        existing.ours and existing.source == "ucp-clusters/demo-stage-kubeconfig"
    )
    if stranger and one.fate is Fate.ALIVE:
        assert isinstance(decide(one), Refuse)
    if existing and not existing.ours:
        assert isinstance(decide(one), Refuse | NoAction)


@given(situations())
def test_only_deleted_sources_are_deregistered(one: Observation) -> None:
    if isinstance(decide(one), Deregister):
        assert one.fate is not Fate.ALIVE
    if isinstance(decide(one), Register | Relabel | Keep):
        assert one.fate is Fate.ALIVE


@given(situations())
def test_a_cluster_joins_an_environment_only_if_it_is_known_and_free(one: Observation) -> None:
    decision = decide(one)
    if isinstance(decision, Register | Relabel):
        held = one.existing.environment or one.existing.draining if one.existing else None
        wanted = decision.source.environment
        assert wanted is not None
        if wanted != held:
            assert wanted in one.environments
            assert wanted not in one.holders


@given(situations())
def test_decisions_are_deterministic(one: Observation) -> None:
    assert decide(one) == decide(one)


def named_source(name: str, server: str = "https://127.0.0.1:6443") -> Observation:
    """A cluster that a person registers under a name of their choice, with a labeled Secret."""
    secret = {
        "metadata": {
            "name": f"{name}-kubeconfig",
            "namespace": "ucp-clusters",
            "uid": "u",
            "labels": {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "stage"},
        },
        "data": {"kubeconfig": base64.b64encode(json.dumps(config(server)).encode()).decode()},
    }
    reserved = Reserved.of("demo-core", "https://10.0.0.7:6443")
    return seen(source=describe(secret, secret), reserved=reserved)


@pytest.mark.parametrize("name", ["in-cluster", "demo-core"])
def test_app_clusters_cannot_use_the_names_of_the_core(name: str) -> None:
    """Argo CD syncs to neither of two clusters with the same name."""
    decision = decide(named_source(name))
    assert isinstance(decision, Refuse)
    assert decision.reason == "NameReserved"


@pytest.mark.parametrize(
    "server",
    [
        "https://kubernetes.default.svc",
        "https://kubernetes.default.svc/",
        "https://KUBERNETES.default.svc.:443",
        "https://kubernetes.default.svc.cluster.local",
        "https://kubernetes.default",
        "https://10.0.0.7:6443",
    ],
)
def test_app_clusters_cannot_use_the_addresses_of_the_core(server: str) -> None:
    decision = decide(named_source("mine", server))
    assert isinstance(decision, Refuse)
    assert decision.reason == "AddressReserved"


def test_other_names_and_addresses_are_accepted() -> None:
    assert isinstance(decide(named_source("mine", "https://10.0.0.7:7443")), Register)
