"""Syncers and their copies on app clusters, on real API servers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import (
    CONFIG_MAP,
    EVENT,
    NAMESPACE,
    ROLE,
    SECRET,
    SYNCER,
    Invalid,
    Kube,
    KubeError,
)
from tests.integration.reconciler.mirror_world import (
    ALL,
    CONNECTION,
    PROD,
    SOURCES,
    STAGE,
    Mirrors,
    decoded,
    denying,
    encoded,
    secret,
)
from tests.integration.reconciler.world import Clusters, eventually

pytestmark = pytest.mark.engines

PAPER = {
    "sourceName": "db-conn",
    "sourceNamespace": SOURCES,
    "kinds": "secret",
    "targetCluster": STAGE,
    "targetNamespace": "quote",
}
"""An entry in the notation of the reference."""
DB = {"endpoint": "10.0.0.1", "username": "app", "password": "hunter2hunter2", "port": "5432"}


@pytest.fixture
def mirrors(world: Clusters) -> Mirrors:
    return Mirrors(world)


def test_a_syncer_in_the_notation_of_the_reference_copies_a_connection_secret(
    mirrors: Mirrors,
) -> None:
    mirrors.started("stage", "prod")
    mirrors.source("db-conn", DB, type=CONNECTION)
    mirrors.syncer("db", PAPER, {**PAPER, "targetCluster": PROD})
    for cluster in (STAGE, PROD):
        copy = mirrors.await_copy("db-conn", DB, cluster=cluster)
        assert copy["type"] == CONNECTION
        assert copy["metadata"]["labels"][names.MANAGED_BY] == names.OURS
    status = mirrors.await_ready("db")
    assert (status["copies"], status["synced"]) == (2, 2)
    assert [(each["cluster"], each["environment"]) for each in status["targets"]] == [
        (PROD, "prod"),
        (STAGE, "stage"),
    ]
    managers = {each["manager"] for each in copy["metadata"]["managedFields"]}
    assert managers == {"k8s-ucp"}


def test_copies_follow_changes_and_are_deleted_with_source_entry_or_syncer(
    mirrors: Mirrors,
) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.source("other", {"a": "b"})
    mirrors.syncer("db", PAPER, {**PAPER, "sourceName": "other"})
    mirrors.await_copy("db-conn", DB)
    mirrors.await_copy("other", {"a": "b"})

    mirrors.source("db-conn", {"only": "this"})
    mirrors.await_copy("db-conn", {"only": "this"})

    mirrors.core.delete(SECRET, "db-conn", SOURCES)
    mirrors.await_none("db-conn")
    assert "the source Secret" in mirrors.message("db") or mirrors.await_ready(
        "db", "SourceMissing"
    )
    mirrors.source("db-conn", DB)
    mirrors.await_copy("db-conn", DB)

    mirrors.syncer("db", PAPER)
    mirrors.await_none("other")
    mirrors.core.delete(SYNCER, "db", SOURCES)
    mirrors.await_none("db-conn")
    eventually(lambda: mirrors.core.find(SYNCER, "db", SOURCES) is None, "end of the Syncer")
    eventually(
        lambda: mirrors.app().find(ROLE, names.MIRROR_IDENTITY, "quote") is None,
        "rights are given back",
    )
    assert mirrors.app().find(NAMESPACE, "quote") is not None


def test_drift_is_repaired(mirrors: Mirrors) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.syncer("db", PAPER)
    mirrors.await_copy("db-conn", DB)
    mirrors.await_ready("db")
    app = mirrors.app()
    change = {"data": encoded({"password": "other", "added": "1"})}
    app.patch(SECRET, "db-conn", "quote", change)
    mirrors.await_copy("db-conn", DB)
    app.patch(
        SECRET, "db-conn", "quote", {"metadata": {"labels": None}, "data": encoded({"x": "y"})}
    )
    copy = mirrors.await_copy("db-conn", DB)
    assert names.MIRROR in copy["metadata"]["labels"]
    app.patch(SECRET, "db-conn", "quote", {"metadata": {"labels": {"mine": "stays"}}})
    app.delete(SECRET, "db-conn", "quote")
    mirrors.await_copy("db-conn", DB)
    app.delete(NAMESPACE, "quote")
    eventually(
        lambda: (app.find(NAMESPACE, "quote") or {}).get("status", {}).get("phase") != "Active",
        "the namespace goes",
    )


def test_selected_secrets_are_copied_to_all_clusters_with_renamed_keys(mirrors: Mirrors) -> None:
    mirrors.started("stage")
    for number in range(3):
        mirrors.source(f"db-{number}", {**DB, "port": str(number)}, labels={"tier": "db"})
    mirrors.source("not-db", {"a": "b"})
    mirrors.syncer(
        "all",
        {
            "sourceSelector": {"matchLabels": {"tier": "db"}},
            "targetNamespace": "{environment}-data",
            "targetName": "{namespace}.{name}",
            "keys": {"DB_HOST": "endpoint", "DB_PORT": "port"},
            **ALL,
        },
    )
    for number in range(3):
        want = {"DB_HOST": "10.0.0.1", "DB_PORT": str(number)}
        mirrors.await_copy(f"{SOURCES}.db-{number}", want, "stage-data")
    assert mirrors.await_ready("all")["copies"] == 3
    # A new environment gets its Secrets automatically.
    mirrors.world.declare("prod")
    mirrors.await_copy(
        f"{SOURCES}.db-1", {"DB_HOST": "10.0.0.1", "DB_PORT": "1"}, "prod-data", PROD
    )
    # The copies of a source that loses its label are deleted.
    mirrors.source("db-1", DB)
    mirrors.core.patch(SECRET, "db-1", SOURCES, {"metadata": {"labels": {"tier": None}}})
    mirrors.await_none(f"{SOURCES}.db-1", "prod-data", PROD)
    mirrors.await_none(f"{SOURCES}.db-1", "stage-data")
    copied = [each["metadata"]["name"] for each in mirrors.app().list_all(SECRET, "stage-data")]
    assert sorted(copied) == [f"{SOURCES}.db-0", f"{SOURCES}.db-2"]


def test_config_maps_are_copied_too(mirrors: Mirrors) -> None:
    mirrors.started()
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": SOURCES},
        "data": {"region": "eu"},
        "binaryData": encoded({"logo": "\x00\x01"}),
    }
    mirrors.core.apply(settings, manager="test")
    mirrors.syncer("settings", {**PAPER, "sourceName": "settings", "kinds": "configmap"})

    def same() -> bool:
        found = mirrors.app().find(CONFIG_MAP, "settings", "quote") or {}
        return found.get("data") == {"region": "eu"} and "binaryData" in found

    eventually(same, "the ConfigMap")


def test_a_foreign_secret_is_left_alone_and_adopted_on_request(mirrors: Mirrors) -> None:
    mirrors.started()
    app = mirrors.app()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "quote"}}
    app.apply(namespace, manager="test")
    foreign = app.apply(secret("db-conn", "quote", {"mine": "1"}), manager="somebody")
    mirrors.source("db-conn", DB)
    mirrors.syncer("db", PAPER)
    status = mirrors.await_ready("db", "Taken")
    assert "conflictPolicy: Adopt" in status["conditions"][0]["message"]
    mirrors.core.delete(SYNCER, "db", SOURCES)
    eventually(lambda: mirrors.core.find(SYNCER, "db", SOURCES) is None, "end of the Syncer")
    assert mirrors.copy("db-conn") == foreign

    mirrors.syncer("db", {**PAPER, "conflictPolicy": "Adopt"})
    mirrors.await_copy("db-conn", DB)
    mirrors.await_ready("db")
    assert mirrors.copy("db-conn")["metadata"]["uid"] == foreign["metadata"]["uid"]
    mirrors.core.delete(SYNCER, "db", SOURCES)
    eventually(lambda: mirrors.core.find(SYNCER, "db", SOURCES) is None, "end of the Syncer")
    released = mirrors.copy("db-conn")
    assert released is not None, "what somebody else made was deleted"
    assert released["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert not released["metadata"].get("annotations")


def test_retained_copies_stay_without_labels_and_annotations(mirrors: Mirrors) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.syncer("db", {**PAPER, "deletionPolicy": "Retain"})
    mirrors.await_copy("db-conn", DB)
    mirrors.await_ready("db")
    mirrors.core.delete(SECRET, "db-conn", SOURCES)
    mirrors.await_ready("db", "SourceMissing")
    mirrors.core.delete(SYNCER, "db", SOURCES)
    eventually(lambda: mirrors.core.find(SYNCER, "db", SOURCES) is None, "end of the Syncer")
    copy = mirrors.copy("db-conn")
    assert decoded(copy) == DB
    assert copy and not copy["metadata"].get("labels")
    assert not copy["metadata"].get("annotations")


def test_an_immutable_copy_is_replaced(mirrors: Mirrors) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB, immutable=True)
    mirrors.syncer("db", PAPER)
    first = mirrors.await_copy("db-conn", DB)
    assert first["immutable"] is True
    mirrors.core.delete(SECRET, "db-conn", SOURCES)
    mirrors.source("db-conn", {"other": "data"}, type=CONNECTION)
    copy = mirrors.await_copy("db-conn", {"other": "data"})
    assert copy["type"] == CONNECTION
    assert "immutable" not in copy
    mirrors.await_ready("db")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"targetNamespace": "a", "targetCluster": "b"}, "exactly one of sourceName"),
        ({**PAPER, "sourceSelector": {}}, "exactly one of sourceName"),
        ({**PAPER, "targetSelector": {}}, "exactly one of targetCluster"),
        ({**PAPER, "targetNamespace": "{nmae}"}, "placeholders"),
        ({**PAPER, "targetNamespace": "kube-system"}, "copies in namespace kube-"),
        ({**PAPER, "targetName": "Big"}, "placeholders"),
        ({**PAPER, "kinds": "pod"}, "secret"),
        ({**PAPER, "keys": {"a/b": "c"}}, "a key may contain"),
        ({**PAPER, "sourceNme": "x"}, "sourceNme"),
        (
            {
                "sourceSelector": {},
                "targetCluster": STAGE,
                "targetNamespace": "a",
                "targetName": "b",
            },
            "same name",
        ),
        (
            {
                **PAPER,
                "targetCluster": None,
                "targetSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
            },
            "need values",
        ),
    ],
)
def test_an_invalid_syncer_is_rejected_with_an_explanation(
    mirrors: Mirrors, entry: dict[str, Any], says: str
) -> None:
    entry = {name: value for name, value in entry.items() if value is not None}
    with pytest.raises(Invalid, match=says):
        mirrors.core.request(
            "POST",
            SYNCER.path(SOURCES),
            query={"fieldValidation": "Strict"},
            body={
                "apiVersion": "k8s-ucp.io/v1alpha1",
                "kind": "Syncer",
                "metadata": {"name": "wrong"},
                "spec": {"data": [entry]},
            },
        )


def test_errors_that_the_schema_cannot_detect_are_reported_as_conditions(mirrors: Mirrors) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.core.apply(secret("planted", "default", {"a": "b"}), manager="test")
    mirrors.syncer("namespace", {**PAPER, "sourceNamespace": "default", "sourceName": "planted"})
    mirrors.await_ready("namespace", "Mistaken")
    assert "reconciler.sourceNamespaces" in mirrors.message("namespace")
    mirrors.syncer("cluster", {**PAPER, "targetCluster": "demo-moon"})
    mirrors.await_ready("cluster", "NotRegistered")
    mirrors.syncer("key", {**PAPER, "keys": {"A": "absent"}, "targetName": "a"})
    mirrors.await_ready("key", "KeyMissing")
    mirrors.syncer(
        "kubeconfig",
        {**PAPER, "sourceName": "demo-stage-kubeconfig", "sourceNamespace": "ucp-clusters"},
    )
    mirrors.await_ready("kubeconfig", "NotMirrored")
    mirrors.syncer("first", {**PAPER, "targetName": "same"})
    mirrors.await_ready("first")
    mirrors.source("other", {"a": "b"})
    mirrors.syncer("second", {**PAPER, "sourceName": "other", "targetName": "same"})
    mirrors.await_ready("second", "Duplicate")
    assert "Syncer crossplane-system/first" in mirrors.message("second")
    mirrors.core.delete(SYNCER, "first", SOURCES)
    mirrors.await_copy("same", {"a": "b"})
    mirrors.await_ready("second")


def test_the_mirror_identity_has_no_other_permissions(mirrors: Mirrors) -> None:
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.syncer("db", PAPER)
    mirrors.await_copy("db-conn", DB)
    role = mirrors.app().get(ROLE, names.MIRROR_IDENTITY, "quote")
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }
    ]
    user = f"system:serviceaccount:{names.IDENTITY_NAMESPACE}:{names.MIRROR_IDENTITY}"

    def may(verb: str, resource: str, namespace: str) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "resourceAttributes": {"verb": verb, "resource": resource, "namespace": namespace},
            },
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(mirrors.app().request("POST", path, body=review)["status"]["allowed"])

    assert may("create", "secrets", "quote")
    assert not may("create", "configmaps", "quote")
    assert not may("list", "secrets", "kube-system")
    assert not may("list", "secrets", "")
    assert not may("create", "namespaces", "")
    assert not may("create", "pods", "quote")


def versions(kube: Kube) -> dict[str, str]:
    return {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["metadata"][
            "resourceVersion"
        ]
        for each in kube.list_all(SECRET)
    }


def test_a_restart_with_an_empty_cache_writes_nothing(mirrors: Mirrors) -> None:
    mirrors.started("stage", "prod")
    for number in range(20):
        mirrors.source(f"db-{number}", DB, labels={"tier": "db"})
    entry = {"sourceSelector": {"matchLabels": {"tier": "db"}}, "targetNamespace": "quote", **ALL}
    mirrors.syncer("all", entry)
    mirrors.await_copy("db-19", DB, cluster=PROD)
    eventually(lambda: mirrors.status("all").get("synced") == 40, "all copies")
    time.sleep(1.5)
    before = {name: versions(kube) for name, kube in mirrors.world.apps.items()}
    syncer = mirrors.core.get(SYNCER, "all", SOURCES)["metadata"]["resourceVersion"]
    mirrors.world.stop()
    mirrors.world.start()
    time.sleep(4)
    assert {name: versions(kube) for name, kube in mirrors.world.apps.items()} == before
    assert mirrors.core.get(SYNCER, "all", SOURCES)["metadata"]["resourceVersion"] == syncer
    mirrors.source("db-3", {"a": "b"}, labels={"tier": "db"})
    mirrors.await_copy("db-3", {"a": "b"}, cluster=PROD)


def test_a_secrets_values_in_a_clusters_refusal_reach_neither_status_nor_log(
    mirrors: Mirrors,
) -> None:
    """An admission policy of the app cluster may quote the object that it refuses."""
    mirrors.started()
    app = mirrors.app()
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["secrets"]}
    quoting = {
        "expression": "object.metadata.name != 'db-conn'",
        "messageExpression": "'got ' + object.data.password",
    }
    with denying(app, rule, quoting, lambda: _refuses(app)):
        mirrors.source("db-conn", DB)
        mirrors.syncer("db", PAPER)
        message = mirrors.await_ready("db", "Refused") and mirrors.message("db")
    assert "the cluster rejected it" in message
    assert "got …" in message
    told = [*mirrors.core.list_all(EVENT), mirrors.status("db"), mirrors.world.logs.getvalue()]
    assert encoded(DB)["password"] not in str(told)


def _refuses(app: Kube) -> bool:
    item = secret("db-conn", "default", {"password": "a"})
    try:
        app.create(item)
    except KubeError:
        return True
    app.delete(SECRET, "db-conn", "default")
    return False


def test_roles_of_others_do_not_stop_the_mirrors_of_a_cluster(mirrors: Mirrors) -> None:
    """An app can create a Role of that name in its namespace, without what the identity needs."""
    app = mirrors.app()
    for verbs in (["get"], ["get", "list", "watch"]):
        namespace = f"rogue-{len(verbs)}"
        named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        app.apply(named, manager="test")
        labels = {names.MANAGED_BY: names.OURS}
        metadata = {"name": names.MIRROR_IDENTITY, "namespace": namespace, "labels": labels}
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]
        api = "rbac.authorization.k8s.io/v1"
        role = {"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules}
        app.apply(role, manager="test")
    mirrors.started()
    mirrors.source("db-conn", DB)
    mirrors.syncer("db", PAPER)
    mirrors.await_copy("db-conn", DB)
    mirrors.source("db-conn", {"password": "next"})
    mirrors.await_copy("db-conn", {"password": "next"})
    mirrors.await_ready("db")


def test_forged_annotations_of_copies_stop_no_other_copies(mirrors: Mirrors) -> None:
    """Whoever may write Secrets in a namespace with copies may write any annotations there."""
    mirrors.started()
    count = 12
    for number in range(count):
        mirrors.source(f"db-{number}", DB, labels={"tier": "db"})
    selecting = {"sourceSelector": {"matchLabels": {"tier": "db"}}, "targetNamespace": "quote"}
    mirrors.syncer("all", {**selecting, **ALL})
    eventually(lambda: mirrors.status("all").get("synced") == count, "all copies")
    mirrors.world.stop()

    app, ours = mirrors.app(), f"{SOURCES}/all"
    claims = [(ours, "nowhere"), (ours, f"{SOURCES}/"), (ours, f"{SOURCES}/a/b"), (ours, "../a")]
    claims += [("nobody", ours), (f"{SOURCES}/", ours), ("kube-system/theirs", ours)]
    for number, (syncer, source) in enumerate(claims):
        forged = secret(f"a-{number}", "quote", {"a": "b"}, labels={names.MIRROR: "demo"})
        forged["metadata"]["annotations"] = {
            names.SYNCER: syncer,
            names.MIRROR_SOURCE: source,
            names.MIRROR_PLACE: f"{STAGE}/quote/a-{number}",
        }
        app.apply(forged, manager="attacker")
    for number in range(count):
        mirrors.source(f"db-{number}", {"password": "new"}, labels={"tier": "db"})

    mirrors.world.start()
    for number in range(count):
        mirrors.await_copy(f"db-{number}", {"password": "new"})
    mirrors.await_ready("all")
    logs = mirrors.world.logs.getvalue()
    assert '"bug"' not in logs
    assert "kube-system" not in logs
    assert {f"a-{each}" for each in range(len(claims))} <= {
        each["metadata"]["name"] for each in app.list_all(SECRET, "quote")
    }
