"""Untrusted kubeconfigs: refused with a reason; no program is run and no file is opened."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.kube import SECRET
from k8s_ucp.reconciler.access.authenticators.base import ClusterInfo, NoAccess, choose, kubeconfig
from k8s_ucp.reconciler.access.cluster_clients import AUTHENTICATORS, ClusterClients
from k8s_ucp.reconciler.access.kubeconfig import LARGEST, read
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from tests.unit.reconciler.access.authenticators.clouds import NoCloud
from tests.unit.reconciler.objects import (
    AUTHORITY,
    config,
    kubeconfig_secret,
    local_cluster,
    source,
)

CANARY = "canary-5f1c"


def encoded(content: Any) -> bytes:
    return json.dumps(content).encode()


def with_user(**user: Any) -> bytes:
    return encoded(
        kubeconfig({"server": "https://a:1", "certificate-authority-data": AUTHORITY}, user)
    )


def as_yaml(content: Any) -> bytes:
    stream = StringIO()
    YAML(typ="safe", pure=True).dump(content, stream)
    return stream.getvalue().encode()


def refusal(content: bytes) -> NoAccess:
    with pytest.raises(NoAccess) as caught:
        choose(read(content), AUTHENTICATORS)
    return caught.value


@pytest.mark.parametrize(
    "user",
    [{"token": "t"}, {"client-certificate-data": AUTHORITY, "client-key-data": AUTHORITY}],
)
def test_static_credentials_are_accepted(user: dict[str, str]) -> None:
    auth_info = read(with_user(**user))
    answer = choose(auth_info, AUTHENTICATORS).connect(auth_info, NoCloud())
    assert answer["users"][0]["user"] == user
    assert answer["clusters"][0]["cluster"]["server"] == "https://a:1"


def test_a_kubeconfig_is_parsed_once_and_again_after_a_change() -> None:
    """Parsing the largest accepted kubeconfig at every reconcile would take half a second each."""
    nobody: Any = None
    spec = WatchSpec(SECRET, "ucp-clusters")
    watch = Informer(nobody, spec, Log(StringIO()), metrics=Metrics(), seconds=6)
    clients = ClusterClients(
        SharedInformers(nobody, nobody, nobody, {"ucp-clusters": watch}), nobody, nobody
    )
    watch.store.put(kubeconfig_secret(local_cluster()))
    padding = "".join(f"# {number}\nk{number}: v\n" for number in range(2_400))
    owner = local_cluster()
    one = replace(source(owner), kubeconfig=as_yaml(config()) + padding.encode())
    began = time.process_time()
    first = clients.auth_info_of(one)
    took = time.process_time() - began
    began = time.process_time()
    for _ in range(10):
        assert clients.auth_info_of(one) == first
    assert time.process_time() - began < took
    for _ in range(2):
        with pytest.raises(NoAccess):
            clients.auth_info_of(replace(one, kubeconfig=b"words"))
    assert clients.auth_info_of(one) == first


def test_a_yaml_kubeconfig_is_read() -> None:
    assert read(as_yaml(config())).server == "https://127.0.0.1:6443"


@pytest.mark.parametrize(
    ("command", "way"),
    [
        ("gke-gcloud-auth-plugin", "gcp"),
        ("/usr/local/bin/aws-iam-authenticator", "aws"),
        ("kubelogin", "azure"),
        ("doctl", "digitalocean"),
    ],
)
def test_an_exec_plugin_is_recognized_and_never_run(command: str, way: str) -> None:
    auth_info = read(with_user(exec={"command": command, "env": [{"value": CANARY}]}))
    assert choose(auth_info, AUTHENTICATORS).name == way


@pytest.mark.parametrize(
    ("provider", "way"),
    [("gke", "gcp"), ("eks", "aws"), ("aks", "azure"), ("digitalocean", "digitalocean")],
)
def test_the_provider_of_the_owner_decides_for_a_kubeconfig_without_a_user(
    provider: str, way: str
) -> None:
    auth_info = read(with_user(), ClusterInfo(provider=provider))
    assert choose(auth_info, AUTHENTICATORS).name == way


def test_cloud_credentials_are_not_used_on_the_basis_of_a_label() -> None:
    user = {"exec": {"command": "gke-gcloud-auth-plugin"}}
    auth_info = read(with_user(**user), ClusterInfo(provider="gke", trusted=False))
    with pytest.raises(NoAccess, match="label") as caught:
        choose(auth_info, AUTHENTICATORS)
    assert caught.value.reason == "CredentialsMissing"


def test_an_unknown_exec_plugin_is_named_and_never_run(tmp_path: Any) -> None:
    proof = tmp_path / "ran"
    error = refusal(with_user(exec={"command": "touch", "args": [str(proof)]}))
    assert "'touch'" in error.message
    assert not proof.exists()


def test_a_user_without_credentials_is_refused_with_what_is_missing() -> None:
    error = refusal(with_user())
    assert error.reason == "CredentialsMissing"
    assert "token" in error.message


def test_a_client_certificate_without_its_key_is_refused() -> None:
    assert refusal(with_user(**{"client-certificate-data": AUTHORITY})).reason == (
        "CredentialsMissing"
    )


def test_other_entries_of_the_same_name_are_ignored() -> None:
    plugin = {"exec": {"command": "gke-gcloud-auth-plugin"}}
    content = json.loads(with_user(**plugin))
    content["contexts"].append({"name": "app", "context": "text"})
    assert read(encoded(content)).plugin == "gke-gcloud-auth-plugin"


def changed(**cluster: Any) -> bytes:
    return encoded(kubeconfig({"server": "https://a:1", **cluster}, {"token": CANARY}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"just words",
        b"token: [" + CANARY.encode(),
        b"clusters: {",
        encoded({}),
        encoded({"clusters": "x", "users": 1, "contexts": None}),
        encoded({**config(), "current-context": "other"}),
        encoded({**config(), "contexts": [{"name": "app", "context": "text"}]}),
        encoded({**config(), "users": ["text"]}),
        changed(server="http://a:1"),
        changed(server=""),
        changed(server="https://"),
        changed(server=["https://a"]),
        changed(server="https://[::1"),
        changed(server="https://a:99999999"),
        changed(server="https://a:port"),
        b"a:\n" + b"- b\n" * 60_000,
        b"".join(b"k%d: v\r" % number for number in range(15_000)),
        changed(**{"insecure-skip-tls-verify": True}),
        changed(**{"proxy-url": "http://127.0.0.1:3128"}),
        changed(**{"certificate-authority": "/etc/shadow"}),
        changed(**{"certificate-authority-data": "!!"}),
        changed(**{"tls-server-name": ["a"]}),
        with_user(token=f"{CANARY}\n"),
        with_user(tokenFile="/etc/shadow"),
        with_user(**{"client-certificate": "/etc/shadow", "client-key": "/etc/shadow"}),
        with_user(**{"client-certificate-data": "!!", "client-key-data": AUTHORITY}),
        b"x" * (LARGEST + 1),
        b"[" * 100_000,
        b"a: &a [1]\nb: *c",
        b"!!python/object/apply:os.system ['true']",
    ],
)
def test_a_malformed_kubeconfig_is_refused_with_a_reason(content: bytes) -> None:
    error = refusal(content)
    assert error.reason == "KubeconfigInvalid"
    assert error.message
    assert CANARY not in error.message


def test_a_huge_kubeconfig_is_refused_with_a_reason() -> None:
    error = refusal(b"x" * 10_000_000)
    assert error.reason == "KubeconfigInvalid"
    assert error.message
    assert CANARY not in error.message


@given(st.binary(max_size=300))
def test_arbitrary_bytes_never_crash_the_reader(content: bytes) -> None:
    with pytest.raises(NoAccess):
        read(content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "user",
                    "users",
                    "cluster",
                    "clusters",
                    "context",
                    "contexts",
                    "server",
                    "exec",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON, JSON, JSON)
def test_arbitrary_json_never_crashes_the_reader(
    users: Any, clusters: Any, contexts: Any, name: Any
) -> None:
    shape = {"users": users, "clusters": clusters, "contexts": contexts, "current-context": name}
    try:
        choose(read(encoded(shape)), AUTHENTICATORS)
    except NoAccess as error:
        assert error.message


def test_error_messages_never_contain_credentials() -> None:
    text = base64.b64encode(CANARY.encode()).decode()
    error = refusal(with_user(**{"client-certificate-data": text + "!", "client-key-data": text}))
    assert text not in str(error)
