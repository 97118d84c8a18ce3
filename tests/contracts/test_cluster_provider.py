"""The contract of cluster providers (cluster_provider.py), tested with each of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest
from k8s_ucp.clusters.kind.nodes import NOTE
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.kube import DEPLOYMENT, NAMESPACE, Kube
from tests.contracts.conftest import Kind, Workshop
from tests.control_planes import deployment, eventually, namespace, quiet

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def provider(workshop: Workshop) -> ClusterProvider:
    return workshop.provider()


@pytest.fixture(scope="module")
def kept(workshop: Workshop, provider: ClusterProvider) -> Iterator[str]:
    """A running cluster that tests share; none of them stops it."""
    name = workshop.named("kept")
    provider.create(ClusterRequest(name), quiet)
    yield name
    provider.delete(name)


@pytest.fixture(scope="module")
def name(workshop: Workshop, provider: ClusterProvider) -> Iterator[str]:
    """The name of a cluster that tests create, stop and start one after the other."""
    name = workshop.named("own")
    yield name
    provider.delete(name)


def admin(provider: ClusterProvider, name: str) -> Kube:
    return Kube(provider.kubeconfig(name))


def test_a_made_cluster_is_there_and_becomes_ready(provider: ClusterProvider, kept: str) -> None:
    assert kept in provider.names()
    eventually(lambda: provider.state(kept).ready, lambda: provider.state(kept))
    state = provider.state(kept)
    assert state.exists
    assert state.running
    assert state.message == ""
    assert state.version is not None
    assert admin(provider, kept).version() == state.version


def unique(name: str) -> str:
    """A name of its own, since successive clusters of a provider may share an API server."""
    return f"{name}-{uuid4().hex[:6]}"


def test_the_kubeconfig_works_and_needs_no_file(provider: ClusterProvider, kept: str) -> None:
    config = provider.kubeconfig(kept)
    keys = [key for user in config["users"] for key in user["user"]]
    assert not [key for key in keys if key != "token" and not key.endswith("data")]
    kube = Kube(config)
    mine = unique("made-by-admin")
    kube.create(namespace(mine))
    assert kube.get(NAMESPACE, mine)["status"]["phase"] == "Active"


def test_creating_an_existing_cluster_again_keeps_it(provider: ClusterProvider, kept: str) -> None:
    before = admin(provider, kept).get(NAMESPACE, "kube-system")["metadata"]["uid"]
    provider.create(ClusterRequest(kept), quiet)
    assert admin(provider, kept).get(NAMESPACE, "kube-system")["metadata"]["uid"] == before


def test_a_kind_node_without_ucps_record_is_kept_and_recorded_again(
    workshop: Workshop, provider: ClusterProvider, name: str
) -> None:
    if not isinstance(workshop, Kind):
        pytest.skip("only a kind cluster has a note in its node")
    provider.create(ClusterRequest(name), quiet)
    before = admin(provider, name).get(NAMESPACE, "kube-system")["metadata"]["uid"]
    workshop.in_node(name, "rm", NOTE)
    provider.create(ClusterRequest(name), quiet)
    assert admin(provider, name).get(NAMESPACE, "kube-system")["metadata"]["uid"] == before
    assert "archives" in workshop.in_node(name, "cat", NOTE)


def test_starting_a_running_cluster_changes_nothing(provider: ClusterProvider, kept: str) -> None:
    provider.start(kept)
    provider.start(kept)
    assert provider.state(kept).running


def test_a_deployment_becomes_available(
    workshop: Workshop, provider: ClusterProvider, kept: str
) -> None:
    kube = admin(provider, kept)
    echo = unique("echo")
    kube.create(deployment(echo, workshop.image))
    eventually(
        lambda: kube.get(DEPLOYMENT, echo, "default")["status"].get("availableReplicas") == 2,
        lambda: kube.get(DEPLOYMENT, echo, "default")["status"],
    )


@pytest.mark.slow
def test_clusters_with_the_shortest_and_longest_names_can_be_created_concurrently(
    workshop: Workshop,
) -> None:
    provider = workshop.provider()
    names = ["n", "n" * workshop.longest_name]
    failures: list[BaseException] = []

    def make(name: str) -> None:
        try:
            provider.create(ClusterRequest(name), quiet)
        except BaseException as failure:  # noqa: BLE001 (reported by the assertion below)
            failures.append(failure)

    threads = [threading.Thread(target=make, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert not failures
        uids = {
            admin(provider, name).get(NAMESPACE, "kube-system")["metadata"]["uid"] for name in names
        }
        assert len(uids) == 2
        assert all(admin(provider, name).version() for name in names)
    finally:
        for name in names:
            provider.delete(name)


def test_two_concurrent_creations_create_one_cluster(provider: ClusterProvider, name: str) -> None:
    provider.delete(name)
    failures: list[BaseException] = []

    def make() -> None:
        try:
            provider.create(ClusterRequest(name), quiet)
        except BaseException as failure:  # noqa: BLE001 (reported by the assertion below)
            failures.append(failure)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert admin(provider, name).version()


def test_the_same_name_in_two_workspaces_gives_two_clusters_or_is_refused(
    workshop: Workshop, kept: str
) -> None:
    here, there = workshop.provider(), workshop.provider("two")
    if workshop.names_are_shared:
        for call in (there.preflight, lambda request: there.create(request, quiet)):
            with pytest.raises(
                UcpError, match=r"was not created by this|used by a topology of another"
            ):
                call(ClusterRequest(kept))
        there.delete(kept)
        there.stop(kept)
        assert not there.state(kept).exists
        assert there.names() == []
        assert admin(here, kept).version()
        return
    there.create(ClusterRequest(kept), quiet)
    try:
        admin(there, kept).create(namespace("only-there"))
        assert admin(here, kept).find(NAMESPACE, "only-there") is None
    finally:
        there.delete(kept)
    assert admin(here, kept).version()
    assert workshop.remains("two") == []


def test_stopping_keeps_the_data(provider: ClusterProvider, name: str) -> None:
    provider.create(ClusterRequest(name), quiet)
    precious = unique("precious")
    admin(provider, name).create(namespace(precious))
    provider.stop(name)
    stopped = provider.state(name)
    assert (stopped.exists, stopped.running, stopped.ready) == (True, False, False)
    assert stopped.message == "stopped"
    provider.stop(name)
    provider.start(name)
    assert admin(provider, name).find(NAMESPACE, precious)
    provider.stop(name)
    provider.create(ClusterRequest(name), quiet)
    assert admin(provider, name).find(NAMESPACE, precious)


def test_deleting_leaves_nothing(workshop: Workshop) -> None:
    provider = workshop.provider("alone")
    name = workshop.named("short")
    provider.create(ClusterRequest(name), quiet)
    provider.delete(name)
    assert workshop.remains("alone") == []
    assert provider.names() == []
    assert not provider.state(name).exists
    provider.delete(name)


def test_a_cluster_that_was_never_created_can_be_deleted_but_not_started(
    workshop: Workshop,
) -> None:
    provider = workshop.provider("empty")
    assert provider.names() == []
    state = provider.state("absent")
    assert (state.exists, state.running, state.ready) == (False, False, False)
    provider.stop("absent")
    provider.delete("absent")
    with pytest.raises(UcpError, match="absent"):
        provider.start("absent")
    with pytest.raises(UcpError, match="absent"):
        provider.kubeconfig("absent")
    assert workshop.remains("empty") == []


def test_a_creation_that_times_out_leaves_nothing(workshop: Workshop) -> None:
    provider = workshop.provider("hasty")
    name = workshop.named("late")
    with workshop.slow_creations(), pytest.raises(DeadlineExceeded, match="late"):
        provider.create(ClusterRequest(name), quiet, timeout=workshop.too_short)
    assert workshop.remains("hasty") == []
    assert not provider.state(name).exists
    provider.create(ClusterRequest(name), quiet)
    assert admin(provider, name).version()
    provider.delete(name)


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a/b", "../a", "n" * 64, "a\n"])
def test_an_invalid_name_is_refused(provider: ClusterProvider, name: str) -> None:
    with pytest.raises(UcpError, match="name"):
        provider.preflight(ClusterRequest(name))
    with pytest.raises(UcpError, match="name"):
        provider.create(ClusterRequest(name), quiet)


def test_an_unknown_version_is_refused_and_available_versions_are_listed(
    provider: ClusterProvider,
) -> None:
    with pytest.raises(UcpError, match=r"1\.2\.3 .* 1\.\d+|1\.\d+.* 1\.2\.3"):
        provider.preflight(ClusterRequest("some", version="1.2.3"))
