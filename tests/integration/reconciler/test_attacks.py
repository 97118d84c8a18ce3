"""Attackers gain nothing by a Secret in a source namespace, a kubeconfig, or an API server.

No credential of ours or of other clusters is sent to their server, no other cluster is deregistered
or delayed, and memory stays bounded.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psutil
import pytest

from k8s_ucp import names
from k8s_ucp.kube import (
    CRD,
    LOCAL_CLUSTER,
    ROLE,
    ROLE_BINDING,
    SECRET,
    Kube,
    NotFound,
    Object,
)
from k8s_ucp.reconciler.registration.notes import read_notes
from tests.integration.reconciler.access.token_endpoint import Endpoint, account, credential
from tests.integration.reconciler.hostile import (
    TOKEN,
    Hostile,
    Playing,
    brackets,
    flood,
    hostile,
    nulls,
    numbers,
    refuse,
    repeat,
    trickle,
)
from tests.integration.reconciler.mirror_world import PROD, SOURCES, Mirrors
from tests.integration.reconciler.world import ARGOCD, CLUSTERS, Clusters, eventually, token_of

pytestmark = [
    pytest.mark.engines,
    # The attacker's server runs in this process: sockets that its threads leave open in the middle
    # of a response are no leak of ours.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SECONDS = 90
CANARY = "canary-of-the-cloud-9d1e"
GKE = "container.gcp.m.upbound.io"
MEGABYTES = 1024 * 1024


@pytest.fixture
def evil(tmp_path: Path) -> Iterator[Hostile]:
    with hostile(tmp_path, refuse) as found:
        yield found


@pytest.fixture(scope="module")
def managed_clusters(planes: Any) -> Iterator[None]:
    """The CRD of GKE clusters of Crossplane's provider, and our permission to read them.

    Deleted at the end, since other tests use the same control planes.
    """
    core = planes.core
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    core.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"clusters.{GKE}"},
            "spec": {
                "group": GKE,
                "scope": "Namespaced",
                "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster"},
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        },
        manager="test",
    )
    role = {"name": "test-owners", "namespace": CLUSTERS}
    rule = {"apiGroups": [GKE], "resources": ["clusters"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io"
    core.apply(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": role, "rules": [rule]},
        manager="test",
    )
    subject = {"kind": "ServiceAccount", "name": names.RECONCILER, "namespace": CLUSTERS}
    core.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "test-owners"},
            "subjects": [subject],
        },
        manager="test",
    )
    path = f"/apis/{GKE}/v1beta1/namespaces/{CLUSTERS}/clusters"
    eventually(lambda: core.request("GET", path), "Google's clusters served", seconds=SECONDS)
    yield
    core.delete(CRD, f"clusters.{GKE}")
    core.delete(ROLE_BINDING, "test-owners", CLUSTERS)
    core.delete(ROLE, "test-owners", CLUSTERS)
    eventually(lambda: is_unknown(core, path), "Google's clusters served no more", seconds=SECONDS)


def is_unknown(core: Kube, path: str) -> bool:
    try:
        core.request("GET", path)
    except NotFound:
        return True
    return False


def declare_managed(world: Clusters, told: Object, secret: str = "demo-stage-kubeconfig") -> Object:
    """Create a GKE cluster. told: its status.atProvider, as the cloud reported it."""
    core, metadata = world.core, {"name": "demo-stage", "namespace": CLUSTERS}
    path = f"/apis/{GKE}/v1beta1/namespaces/{CLUSTERS}/clusters"
    for item in core.request("GET", path)["items"]:
        core.request("DELETE", f"{path}/{item['metadata']['name']}")
    body = {
        "apiVersion": f"{GKE}/v1beta1",
        "kind": "Cluster",
        "metadata": {**metadata, "labels": {names.ENVIRONMENT: "stage", names.TOPOLOGY: "demo"}},
        "spec": {"forProvider": {}, "writeConnectionSecretToRef": {"name": secret}},
    }
    made: Object = core.request("POST", path, body=body)
    made["status"] = {"atProvider": told}
    answer: Object = core.request("PUT", f"{path}/demo-stage/status", body=made)
    return answer


def secret_of(
    world: Clusters,
    owner: Object | None,
    config: Any,
    name: str = "demo-stage-kubeconfig",
    **more: Any,
) -> str:
    """Create a Secret, as anybody could who may write Secrets there; returns its source key."""
    metadata: Object = {"name": name, "namespace": CLUSTERS, **more}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
    text = config if isinstance(config, str) else json.dumps(config)
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    world.core.apply({**body, "stringData": {"kubeconfig": text}}, manager="attacker")
    return f"{CLUSTERS}/{name}"


def reasons(world: Clusters, source: str) -> list[str]:
    note = read_notes(world.core).get(source) or {}
    return [each["reason"] for each in (note.get("status") or {}).get("conditions") or []]


def await_reason(world: Clusters, source: str, *wanted: str) -> None:
    eventually(
        lambda: set(wanted) & set(reasons(world, source)),
        f"{source}: {wanted}, not {reasons(world, source)}\n{world.logs.getvalue()[-2000:]}",
        seconds=SECONDS,
    )


def cloud(world: Clusters, endpoint: Endpoint) -> None:
    """Provide the project's service account; its token is a canary that must not leak."""
    credential(world, "gcp-creds", account(endpoint))
    endpoint.answer = {"access_token": CANARY, "expires_in": 3600}


def stands(world: Clusters) -> None:
    """Check that demo-prod is registered with its own server and reachable."""
    secret = world.await_registered(PROD)
    server = base64.b64decode(secret["data"]["server"]).decode()
    assert server == world.provider.configs[PROD]["clusters"][0]["cluster"]["server"]
    assert "deletionTimestamp" not in secret["metadata"]


FORGED = [
    *("address", "label", "exec"),
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in ("not named", "certificate", "no address", "own token")
    ),
]


@pytest.mark.usefixtures("managed_clusters")
@pytest.mark.parametrize("how", FORGED)
def test_a_forged_secret_directs_no_cloud_credential_to_the_attackers_server(
    world: Clusters, endpoint: Endpoint, evil: Hostile, how: str
) -> None:
    cloud(world, endpoint)
    ours = {"endpoint": "192.0.2.1", "masterAuth": {"clusterCaCertificate": evil.authority}}
    real = world.provider.configs["demo-stage"]["clusters"][0]["cluster"]
    config = evil.kubeconfig(user={})
    match how:
        case "not named":
            owner, wanted = declare_managed(world, ours, secret="another"), "NotNamedByOwner"
        case "address" | "exec":
            owner, wanted = declare_managed(world, ours), "SourceDiffers"
        case "certificate":
            told = {
                "endpoint": evil.server,
                "masterAuth": {"clusterCaCertificate": real["certificate-authority-data"]},
            }
            owner, wanted = declare_managed(world, told), "SourceDiffers"
        case "no address" | "own token":
            owner, wanted = declare_managed(world, {}), "SourceUnproven"
        case _:
            owner, wanted = None, "CredentialsMissing"
    if how in ("label", "exec"):
        config = evil.kubeconfig(user={"exec": {"command": "gke-gcloud-auth-plugin"}})
    if how == "own token":
        config = evil.kubeconfig()
    labels = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "stage"} if how == "label" else {}
    world.start()
    world.declare("prod")
    world.await_registered(PROD)
    source = secret_of(world, owner, config, labels=labels)
    await_reason(world, source, wanted)
    time.sleep(1)
    assert not evil.heard
    assert not endpoint.asked, "a token was taken for it"
    assert world.cluster_secret() is None
    stands(world)


@pytest.mark.usefixtures("managed_clusters")
def test_a_connection_secret_that_is_changed_after_registration_is_ignored(
    world: Clusters, endpoint: Endpoint, evil: Hostile
) -> None:
    """The registration keeps its address and token."""
    cloud(world, endpoint)
    real = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    cluster = real["clusters"][0]["cluster"]
    told = {
        "endpoint": cluster["server"],
        "masterAuth": {"clusterCaCertificate": cluster["certificate-authority-data"]},
    }
    owner = declare_managed(world, told)
    world.start()
    source = secret_of(world, owner, real)
    await_reason(world, source, "Registered")
    before = world.cluster_secret()
    assert before is not None
    for user in ({}, {"token": TOKEN}):
        secret_of(world, owner, evil.kubeconfig(user=user))
        await_reason(world, source, "SourceDiffers")
        time.sleep(1)
    assert not evil.heard
    after = world.cluster_secret()
    assert after is not None
    assert after["data"] == before["data"]
    secret_of(world, owner, real)
    await_reason(world, source, "Registered")


def test_a_changed_kubeconfig_secret_of_a_local_cluster_is_restored(
    world: Clusters, evil: Hostile
) -> None:
    mirrors = Mirrors(world).started("stage")
    mirrors.source("canary", {"password": CANARY})
    to = {"sourceName": "canary", "targetSelector": {}, "targetNamespace": "quote"}
    mirrors.syncer("canary", to)
    mirrors.await_copy("canary", {"password": CANARY})
    owner = world.local_cluster()
    before = token_of(world.cluster_secret() or {})
    for _ in range(5):
        secret_of(world, owner, evil.kubeconfig())
        mirrors.source("canary", {"password": f"{CANARY}-{time.monotonic()}"})
        time.sleep(0.3)
    mirrors.source("canary", {"password": "last"})
    mirrors.await_copy("canary", {"password": "last"})
    assert not evil.heard
    assert token_of(world.await_registered()) == before


def test_a_secret_that_claims_a_foreign_cluster_does_not_affect_its_registration(
    world: Clusters, evil: Hostile
) -> None:
    world.start(source_namespaces=(CLUSTERS, SOURCES))
    world.declare("prod")
    before = world.await_registered(PROD)
    there = world.local_cluster(PROD)
    assert there is not None
    never = {**there, "metadata": {**there["metadata"], "name": PROD, "uid": "0"}}
    secret_of(world, there, evil.kubeconfig(), name="claims-it")
    secret_of(world, never, evil.kubeconfig(), name="another-life")
    mine = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "prod"}
    for number, notes in enumerate(({}, {names.FORGET: "true"})):
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"{PROD}-kubeconfig" if number else PROD,
                "namespace": SOURCES,
                "labels": mine,
                "annotations": notes,
            },
            "stringData": {"kubeconfig": json.dumps(evil.kubeconfig())},
        }
        world.core.apply(body, manager="attacker")
    await_reason(world, f"{CLUSTERS}/claims-it", "NotNamedByOwner")
    time.sleep(3)
    stands(world)
    after = world.cluster_secret(PROD)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert token_of(after) == token_of(before)
    assert after["metadata"]["labels"].get(names.ENVIRONMENT) == "prod"
    assert not evil.heard


def test_names_and_addresses_of_the_core_cannot_be_registered(
    world: Clusters, evil: Hostile
) -> None:
    world.start()
    labels = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "stage"}
    for name in ("in-cluster", "demo-core"):
        source = secret_of(world, None, evil.kubeconfig(), name=name, labels=labels)
        await_reason(world, source, "NameReserved")
    core = json.loads(json.dumps(world.core_config))
    for number, server in enumerate(("https://kubernetes.default.svc", world.core.server)):
        core["clusters"][0]["cluster"]["server"] = server
        source = secret_of(world, None, core, name=f"mine-{number}", labels=labels)
        await_reason(world, source, "AddressReserved")
    assert world.core.list_all(SECRET, ARGOCD) == []
    assert not evil.heard


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
KUBECONFIGS = {
    "aliases": BOMB,
    "depth": "[" * 100_000,
    "brackets": "{" * 100_000,
    "lines": "a:\n" + "- b\n" * 200_000,
    "keys": "".join(f"k{number}: v\n" for number in range(50_000)),
    "address": json.dumps(
        {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://[::1"}}],
            "users": [{"name": "a", "user": {"token": TOKEN}}],
        }
    ),
    "python": "!!python/object/apply:os.system ['true']",
    "numbers": '{"contexts": ' + "9" * 100_000 + "}",
}


def test_malicious_kubeconfigs_use_few_resources_and_delay_no_other_cluster(
    world: Clusters,
) -> None:
    world.start()
    process = psutil.Process()
    world.declare("stage")
    world.await_registered()
    before, busy = process.memory_info().rss, process.cpu_times().user
    labels = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "prod"}
    sources = [
        secret_of(world, None, text, name=f"x-{name}", labels=labels)
        for name, text in KUBECONFIGS.items()
    ]
    for source in sources:
        await_reason(world, source, "KubeconfigInvalid")
    world.declare("prod")
    world.await_registered(PROD)
    assert process.memory_info().rss - before < 150 * MEGABYTES
    assert process.cpu_times().user - busy < 60
    assert '"bug"' not in world.logs.getvalue()


def lot_of_roles() -> list[Object]:
    role = {"labels": {names.MANAGED_BY: names.OURS}, "name": names.MIRROR_IDENTITY}
    rules = [{"resources": ["secrets"]}]
    return [
        {"metadata": {**role, "namespace": f"n{number}", "uid": "u"}, "rules": rules}
        for number in range(500)
    ]


SERVERS: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
    "refuses": refuse,
    "repeats what it is sent": repeat,
    "a byte now and then": trickle,
    "never ends": flood,
    "small JSON that is large in memory": brackets,
    "numbers": numbers,
    "nulls": nulls,
    "plays along": Playing(),
    "a token with a line break": Playing(token="a\r\nX-Evil: 1"),
    "a token of ten megabytes": Playing(token="x", times=10_000_000),
    "a token that is dead": Playing(expires="1971-01-01T00:00:00Z"),
    "lists without end": Playing(endless=True, items=lot_of_roles),
    "rights in very many namespaces": Playing(items=lambda: lot_of_roles() * 3),
    "objects of no sense": Playing(items=lambda: [{"metadata": {"name": "a"}, "rules": 5}]),
}


MORE_OF_A_KIND = {"repeats what it is sent", "numbers", "rights in very many namespaces"}
"""Servers that resemble another one of these; tested in the soak only."""
QUICK = {
    *("a byte now and then", "never ends", "a token with a line break", "lists without end"),
    "objects of no sense",
}
"""One server for each defence: of time, size, headers, numbers of objects and types."""


def effort(name: str) -> pytest.MarkDecorator | tuple[()]:
    if name in MORE_OF_A_KIND:
        return pytest.mark.soak
    return () if name in QUICK else pytest.mark.slow


@pytest.mark.parametrize(
    "answer",
    [pytest.param(each, id=name, marks=effort(name)) for name, each in SERVERS.items()],
)
def test_a_malicious_api_server_gains_nothing_and_delays_no_other_cluster(
    world: Clusters, evil: Hostile, answer: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    """The attacker's cluster is vouched for by a label; it receives its own credentials only."""
    evil.answer = answer
    mirrors = Mirrors(world).started("prod")
    mirrors.source("canary", {"password": CANARY})
    to = {"sourceName": "canary", "targetCluster": PROD, "targetNamespace": "quote"}
    mirrors.syncer("canary", to)
    mirrors.await_copy("canary", {"password": CANARY}, cluster=PROD)
    process = psutil.Process()
    before, threads = process.memory_info().rss, process.num_threads()
    labels = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "stage"}
    secret_of(world, None, evil.kubeconfig(), name="demo-stage", labels=labels)
    everywhere = {"sourceName": "offered", "targetSelector": {}, "targetNamespace": "offered"}
    mirrors.source("offered", {"a": "b"})
    mirrors.syncer("offered", everywhere)
    eventually(lambda: evil.heard, "a word with the attacker", seconds=SECONDS)
    until, number = time.monotonic() + 2, 0
    while time.monotonic() < until:
        # Other clusters are served as before meanwhile.
        number += 1
        password = {"password": f"{CANARY}-{number}"}
        began = time.monotonic()
        mirrors.source("canary", password)
        mirrors.await_copy("canary", password, cluster=PROD)
        assert time.monotonic() - began < 60
        time.sleep(0.2)
    assert process.memory_info().rss - before < 400 * MEGABYTES
    assert process.num_threads() - threads < 300
    stands(world)
    own = {TOKEN, "handed-out", ""}
    assert evil.credentials() <= own
    assert CANARY not in "".join(evil.heard)
    shown = world.logs.getvalue() + json.dumps(read_notes(world.core))
    assert TOKEN not in shown
    world.core.delete(SECRET, "demo-stage", CLUSTERS)
    eventually(
        lambda: world.core.find(LOCAL_CLUSTER, PROD, CLUSTERS) and not world.cluster_secret(),
        "the end of the attacker's cluster",
        seconds=SECONDS,
    )
