"""The reconciler's identity on a real API server: it is used, and its permissions are limited."""

from __future__ import annotations

import pytest

from k8s_ucp import names
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    SECRET,
    SERVICE_ACCOUNT,
    Forbidden,
    Kube,
)
from tests.integration.reconciler.world import Clusters, eventually

pytestmark = pytest.mark.engines


def test_the_reconciler_uses_its_own_service_account(world: Clusters) -> None:
    reconciler = world.start()
    review = reconciler.kube.request(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    name = review["status"]["userInfo"]["username"]
    assert name == f"system:serviceaccount:{names.CLUSTERS_NAMESPACE}:{names.RECONCILER}"


def test_the_reconciler_has_no_wildcard_permissions(world: Clusters) -> None:
    kube = world.start().kube
    for namespace in ("default", "kube-system", names.ARGOCD_NAMESPACE, names.CLUSTERS_NAMESPACE):
        review = kube.request(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectRulesReview",
                "spec": {"namespace": namespace},
            },
        )
        rules = review["status"]["resourceRules"]
        assert not [each for each in rules if "*" in each["verbs"] + each["resources"]]


@pytest.mark.parametrize("namespace", [None, "kube-system", "default"])
def test_the_reconciler_cannot_list_secrets_in_other_namespaces(
    world: Clusters, namespace: str | None
) -> None:
    kube = world.start().kube
    with pytest.raises(Forbidden):
        kube.list_all(SECRET, namespace)


def test_the_reconciler_cannot_escalate_its_privileges(world: Clusters) -> None:
    kube = world.start().kube

    def bind() -> None:
        kube.create(
            {
                "apiVersion": CLUSTER_ROLE_BINDING.api_version,
                "kind": CLUSTER_ROLE_BINDING.kind,
                "metadata": {"name": "mine"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
            }
        )

    def change(name: str) -> None:
        kube.patch(CONFIG_MAP, name, names.CLUSTERS_NAMESPACE, {"data": {"prod": ""}})

    for forbidden in (
        bind,
        lambda: change(names.ENVIRONMENTS),
        lambda: kube.list_all(NAMESPACE),
        lambda: kube.request_token(names.CLUSTERS_NAMESPACE, "default", seconds=600),
        lambda: kube.delete(SERVICE_ACCOUNT, names.RECONCILER, names.CLUSTERS_NAMESPACE),
    ):
        with pytest.raises(Forbidden):
            forbidden()


def test_a_revoked_token_is_requested_again(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    account = world.core.get(SERVICE_ACCOUNT, names.RECONCILER, names.CLUSTERS_NAMESPACE)
    world.core.delete(SERVICE_ACCOUNT, names.RECONCILER, names.CLUSTERS_NAMESPACE)
    world.core.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": account["metadata"]["name"],
                "namespace": account["metadata"]["namespace"],
            },
        }
    )
    world.declare("prod")
    world.await_registered("demo-prod")


def test_the_reconciler_waits_for_its_service_account(world: Clusters) -> None:
    """Either `ucp start` hasn't created it yet, or somebody deleted it."""
    core: Kube = world.core
    core.delete(SERVICE_ACCOUNT, names.RECONCILER, names.CLUSTERS_NAMESPACE)
    try:
        reconciler = world.start()
        assert reconciler.unready()
    finally:
        core.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": names.RECONCILER, "namespace": names.CLUSTERS_NAMESPACE},
            }
        )
    eventually(lambda: not reconciler.unready(), "readiness")
