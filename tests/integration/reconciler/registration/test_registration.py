"""Registration on real API servers: what is registered, what is refused, what is left alone."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    LOCAL_CLUSTER,
    NAMESPACE,
    SECRET,
    SERVICE_ACCOUNT,
    Forbidden,
    Kube,
    KubeError,
    NotFound,
)
from k8s_ucp.reconciler.runtime.settings import REGISTRATION
from k8s_ucp.timestamps import parse_stamp
from tests.integration.reconciler.registration.planted_secrets import (
    kubeconfig_secret,
    person_s_secret,
    plant,
    vouched,
)
from tests.integration.reconciler.world import (
    ARGOCD,
    CLUSTERS,
    Clusters,
    as_argo_cd,
    deployment,
    eventually,
    token_of,
)

pytestmark = pytest.mark.engines


def test_a_declared_cluster_is_registered_and_argo_cd_has_access(world: Clusters) -> None:
    world.start()
    world.declare(labels={names.PROTECTED: "true"})
    secret = world.await_registered()
    labels = secret["metadata"]["labels"]
    assert labels[names.SECRET_TYPE] == "cluster"
    assert labels[names.ENVIRONMENT] == "stage"
    assert labels[names.PROTECTED] == "true"
    assert labels[names.VERSION] == "v1.35.4"
    with as_argo_cd(secret) as kube:
        kube.apply(deployment("echo", "default"))
    assert world.apps["demo-stage"].delete(DEPLOYMENT, "echo", "default")
    expires = parse_stamp(secret["metadata"]["annotations"][names.TOKEN_EXPIRES])
    assert expires is not None
    assert expires > time.time() + 3600


def test_two_identities_are_created_and_that_of_mirrors_has_no_permissions(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    app = world.apps["demo-stage"]
    for name in (names.ARGOCD_IDENTITY, names.MIRROR_IDENTITY):
        assert app.get(SERVICE_ACCOUNT, name, names.IDENTITY_NAMESPACE)
    token, _ = app.request_token(names.IDENTITY_NAMESPACE, names.MIRROR_IDENTITY, seconds=600)
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    config["users"][0]["user"] = {"token": token}
    mirror = Kube(config)
    with pytest.raises(Forbidden):
        mirror.list_all(SECRET, "default")
    mirror.close()


def test_scoped_access_is_limited_to_the_listed_namespaces(world: Clusters) -> None:
    world.start()
    world.declare(
        "prod", labels={names.ACCESS: "scoped"}, annotations={names.NAMESPACES: "echo, quote"}
    )
    secret = world.await_registered("demo-prod")
    data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert (data["namespaces"], data["clusterResources"]) == ("echo,quote", "false")
    # The ApplicationSet of a team's environments selects by it.
    assert secret["metadata"]["labels"][names.ACCESS] == "scoped"
    with as_argo_cd(secret) as kube:
        kube.apply(deployment("web", "quote"))
        assert kube.get(NAMESPACE, "quote")
        for forbidden in (
            lambda: kube.apply(deployment("web", "default")),
            lambda: kube.list_all(SECRET, "kube-system"),
            lambda: kube.list_all(NAMESPACE),
            lambda: kube.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
            ),
        ):
            with pytest.raises(Forbidden):
                forbidden()


def test_pods_of_a_team_get_no_access_to_their_node_where_argo_cd_is_scoped(
    world: Clusters,
) -> None:
    world.start()
    listed = {names.NAMESPACES: "echo,team-shop", names.TEAM_NAMESPACES: "team-shop"}
    world.declare("prod", labels={names.ACCESS: "scoped"}, annotations=listed)
    secret = world.await_registered("demo-prod")
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    pod["spec"] = {**deployment("web", "echo")["spec"]["template"]["spec"], "hostPID": True}
    with as_argo_cd(secret) as kube:

        def refusal(namespace: str) -> str:
            path = f"/api/v1/namespaces/{namespace}/pods"
            try:
                kube.request("POST", path, query={"dryRun": "All"}, body=pod)
            except Forbidden as error:
                return error.message
            return ""

        # First, the namespaces may lack their ServiceAccount `default`.
        eventually(lambda: "PodSecurity" in refusal("team-shop"), "the team's pod is refused")
        eventually(lambda: not refusal("echo"), "another app's pod is accepted")


def test_access_to_a_namespace_removed_from_the_list_is_revoked(world: Clusters) -> None:
    world.start()
    scoped: dict[str, Any] = {"labels": {names.ACCESS: "scoped"}}
    world.declare("prod", **scoped, annotations={names.NAMESPACES: "echo,quote"})
    before = token_of(world.await_registered("demo-prod"))
    world.declare("prod", **scoped, annotations={names.NAMESPACES: "echo"})
    eventually(
        lambda: token_of(world.cluster_secret("demo-prod") or {}) != before, "a new registration"
    )
    secret = world.await_registered("demo-prod")
    with as_argo_cd(secret) as kube:
        kube.apply(deployment("web", "echo"))
        with pytest.raises(Forbidden):
            kube.apply(deployment("web", "quote"))


def test_permissions_are_revoked_when_access_changes_from_admin_to_scoped(world: Clusters) -> None:
    world.start()
    world.declare("prod")
    world.await_registered("demo-prod")
    world.declare("prod", labels={names.ACCESS: "scoped"}, annotations={names.NAMESPACES: "echo"})
    eventually(
        lambda: "namespaces" in (world.cluster_secret("demo-prod") or {})["data"],
        "a scoped cluster Secret",
    )
    with as_argo_cd(world.await_registered("demo-prod")) as kube, pytest.raises(Forbidden):
        kube.list_all(SECRET, "default")
    assert world.apps["demo-prod"].find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY) is None


def test_scoped_access_without_namespaces_is_refused(world: Clusters) -> None:
    world.start()
    world.declare(labels={names.ACCESS: "scoped"})
    world.await_condition(names.REGISTERED, "False", "NamespacesMissing")
    assert world.cluster_secret() is None


def test_an_environment_is_registered_once_it_is_in_the_list(world: Clusters) -> None:
    world.list_environments("prod")
    world.start(resync_seconds=600)
    world.declare()
    world.await_condition(names.REGISTERED, "False", "EnvironmentUnknown")
    assert world.cluster_secret() is None
    world.list_environments("prod", "stage")
    world.await_registered()
    # Removal from the list deregisters nothing; only deletion of the declaration does.
    world.core.delete(CONFIG_MAP, names.ENVIRONMENTS, CLUSTERS)
    time.sleep(1)
    assert world.cluster_secret() is not None
    assert world.condition(names.REGISTERED) == ("True", "Registered")


def test_an_environment_belongs_to_one_cluster(world: Clusters) -> None:
    world.provider.configs["demo-second"] = world.provider.configs["demo-prod"]
    world.start(resync_seconds=600)
    world.declare()
    world.await_registered()
    world.declare(name="demo-second")
    world.await_condition(names.REGISTERED, "False", "EnvironmentTaken", "demo-second")
    assert world.cluster_secret("demo-second") is None
    world.delete()
    world.await_gone()
    world.await_registered("demo-second")


def test_only_one_of_concurrent_registrations_gets_the_environment(world: Clusters) -> None:
    for number in range(4):
        world.provider.configs[f"demo-{number}"] = world.provider.configs["demo-prod"]
    world.start()
    for number in range(4):
        world.declare(name=f"demo-{number}")

    def outcomes() -> list[str]:
        seen = [world.condition(names.REGISTERED, f"demo-{each}")[1] for each in range(4)]
        return seen if all(seen) and "Registered" in seen else []

    assert sorted(eventually(outcomes, "four decisions")) == [
        *["EnvironmentTaken"] * 3,
        "Registered",
    ]
    found = world.core.list_all(SECRET, ARGOCD, labels=f"{names.SECRET_TYPE}=cluster")
    assert len(found) == 1


@pytest.mark.parametrize("labels", [{}, {names.SECRET_TYPE: "cluster"}])
def test_a_foreign_cluster_secret_is_never_changed(world: Clusters, labels: dict[str, str]) -> None:
    before = world.core.create(person_s_secret(labels))
    world.start()
    world.declare()
    world.await_condition(names.REGISTERED, "False", "NameTaken")
    assert "not created by ucp" in world.message(names.REGISTERED)
    world.delete()
    eventually(lambda: world.local_cluster() is None, "end of the cluster")
    assert world.cluster_secret() == before


def test_a_cluster_is_registered_once_its_name_becomes_free(world: Clusters) -> None:
    world.core.create(person_s_secret({names.SECRET_TYPE: "cluster"}))
    world.start(resync_seconds=600)
    world.declare()
    world.await_condition(names.REGISTERED, "False", "NameTaken")
    world.core.delete(SECRET, "cluster-demo-stage", ARGOCD)
    world.await_registered()


def test_secrets_without_a_valid_claim_register_nothing(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    claims, vouched = {names.ENVIRONMENT: "prod"}, {names.KUBECONFIG_LABEL: ""}
    # The first lacks the label, the second is in no source namespace, the environment of the third
    # is taken.
    kubeconfig_secret(world, "demo-prod-kubeconfig", CLUSTERS, labels=claims)
    kubeconfig_secret(world, "other", "default", labels={**claims, **vouched})
    taken = {names.ENVIRONMENT: "stage", **vouched}
    kubeconfig_secret(world, "claims-stage", CLUSTERS, labels=taken)
    eventually(lambda: "EnvironmentTaken" in world.logs.getvalue(), "a word about the third")
    time.sleep(1)
    found = world.core.list_all(SECRET, ARGOCD, labels=f"{names.SECRET_TYPE}=cluster")
    assert [each["metadata"]["name"] for each in found] == ["cluster-demo-stage"]


def test_a_labeled_secret_registers_a_cluster_until_it_is_deleted(world: Clusters) -> None:
    world.start()
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: "", names.PROVIDER: "elsewhere"}
    kubeconfig_secret(world, "demo-prod-kubeconfig", "crossplane-system", labels=labels)
    secret = eventually(lambda: world.cluster_secret("demo-prod"), "the registration")
    assert secret["metadata"]["labels"][names.PROVIDER] == "elsewhere"
    world.core.delete(SECRET, "demo-prod-kubeconfig", "crossplane-system")
    eventually(lambda: world.cluster_secret("demo-prod") is None, "the end of it")


def test_secrets_are_registered_by_name_only_if_that_is_enabled(world: Clusters) -> None:
    world.start()
    kubeconfig_secret(world, "demo-k8s-prod", "crossplane-system")
    kubeconfig_secret(world, "demo-k8s-unknown", "crossplane-system")
    time.sleep(1)
    assert world.core.list_all(SECRET, ARGOCD) == []
    world.stop()
    world.start(sources_by_name=True)
    secret = eventually(lambda: world.cluster_secret("demo-k8s-prod"), "the registration")
    assert secret["metadata"]["labels"][names.ENVIRONMENT] == "prod"
    world.await_note("crossplane-system/demo-k8s-unknown", "EnvironmentUnknown")
    world.stop()
    # Without sources_by_name, the existing registration is kept.
    world.start()
    world.await_note("crossplane-system/demo-k8s-prod", "KubeconfigMissing")
    assert world.cluster_secret("demo-k8s-prod") is not None
    world.core.delete(SECRET, "demo-k8s-prod", "crossplane-system")
    eventually(lambda: world.cluster_secret("demo-k8s-prod") is None, "the end of it")


def malformed(world: Clusters, what: str) -> str:
    """A kubeconfig with one error."""
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    match what:
        case "no context":
            del config["current-context"]
        case "file reference":
            del user["client-key-data"]
            user["client-key"] = "/etc/hostname"
        case "token file":
            user["tokenFile"] = "/etc/hostname"
        case "http":
            cluster["server"] = cluster["server"].replace("https", "http")
        case "no check":
            cluster["insecure-skip-tls-verify"] = True
        case "no certificate":
            cluster["certificate-authority-data"] = base64.b64encode(b"words").decode()
        case "large":
            config["extensions"] = [{"name": "x" * 900_000}]
            return "# " + json.dumps(config)
    return json.dumps(config)


@pytest.mark.parametrize("text", ["not: [yaml", "{}", "words"])
def test_an_invalid_kubeconfig_is_reported(world: Clusters, text: str) -> None:
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, text)
    world.await_condition(names.REGISTERED, "False", "KubeconfigInvalid")
    assert world.cluster_secret() is None


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("no context", "contexts"),
        ("file reference", "client-key"),
        ("token file", "tokenFile"),
        ("http", "https://"),
        ("no check", "insecure-skip-tls-verify"),
        ("no certificate", "certificate-authority-data"),
        ("large", "too large"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_reported_with_the_field(
    world: Clusters, what: str, named: str
) -> None:
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, malformed(world, what))
    world.await_condition(names.REGISTERED, "False", "KubeconfigInvalid")
    assert named in world.message(names.REGISTERED)
    assert world.cluster_secret() is None


def test_an_exec_plugin_of_a_kubeconfig_is_named_and_never_run(world: Clusters) -> None:
    proof = world.folder / "ran"
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    wanted = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": {**wanted, "command": "touch", "args": [str(proof)]}}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, json.dumps(config))
    world.await_condition(names.REGISTERED, "False", "AuthenticatorMissing")
    assert "'touch'" in world.message(names.REGISTERED)
    assert world.cluster_secret() is None
    assert not proof.exists()


def test_the_api_server_rejects_a_kubeconfig_of_ten_megabytes(world: Clusters) -> None:
    """The largest that it accepts is tested above, as "large".

    It may close the connection before all is sent, so its message isn't always received.
    """
    with pytest.raises(KubeError):
        plant(world, "x" * 10_000_000)
    assert world.core.find(SECRET, "demo-stage-kubeconfig", CLUSTERS) is None


def test_a_server_with_a_certificate_of_another_ca_is_not_trusted(world: Clusters) -> None:
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    other = world.core_config["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["certificate-authority-data"] = other
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, json.dumps(config))
    world.await_condition(names.REACHABLE, "False", "Unreachable")
    assert "certificate" in world.message(names.REACHABLE).lower()
    assert world.cluster_secret() is None
    # Once the kubeconfig is corrected, as after a rotation, the cluster is registered.
    text = base64.b64encode(json.dumps(world.provider.configs["demo-stage"]).encode()).decode()
    change = {"data": {"kubeconfig": text}}
    world.core.patch(SECRET, "demo-stage-kubeconfig", CLUSTERS, change)
    world.declare(annotations=vouched(json.dumps(world.provider.configs["demo-stage"])))
    world.await_registered()


def test_rejected_credentials_are_reported(world: Clusters) -> None:
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    config["users"][0]["user"] = {"token": "wrong"}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, json.dumps(config))
    world.await_condition(names.REGISTERED, "False", "AccessDenied")


def test_a_new_control_plane_with_the_same_name_is_registered_again(world: Clusters) -> None:
    world.start()
    world.declare()
    before = world.await_registered()
    world.provider.configs["demo-stage"] = world.provider.configs["demo-prod"]
    eventually(
        lambda: (world.cluster_secret() or {})["data"]["server"] != before["data"]["server"],
        "the other address",
    )
    with as_argo_cd(world.await_registered()) as kube:
        kube.list_all(NAMESPACE)


def test_a_restart_of_the_reconciler_writes_nothing(world: Clusters) -> None:
    world.start()
    world.declare("stage")
    world.declare("prod")
    for name in ("demo-stage", "demo-prod"):
        world.await_registered(name)
    world.stop()
    before = world.versions()
    made = dict(world.provider.made)
    reconciler = world.start(resync_seconds=0.2)
    eventually(lambda: not reconciler.unready(), "readiness")
    time.sleep(2)
    assert world.versions() == before
    assert world.provider.made == made


def test_a_deletion_while_no_reconciler_runs_is_noticed_later(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    world.stop()
    world.core.patch(LOCAL_CLUSTER, "demo-stage", CLUSTERS, {"metadata": {"finalizers": None}})
    world.delete()
    with pytest.raises(NotFound):
        world.core.get(LOCAL_CLUSTER, "demo-stage", CLUSTERS)
    assert world.cluster_secret() is not None
    world.start()
    eventually(lambda: world.cluster_secret() is None, "deregistration")
