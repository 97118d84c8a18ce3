"""kind's network is removed only if ucp created it and no container uses it."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind import network as kind_network


class Engine(ContainerEngine):
    """Networks by name, and the containers that use them."""

    def __init__(self) -> None:
        super().__init__("docker")
        self.networks: dict[str, str] = {}
        self.users: list[str] = []

    def network(self, name: str) -> str | None:
        return self.networks.get(name)

    def users_of_network(self, name: str) -> list[str]:
        return self.users

    def remove_network(self, name: str) -> None:
        del self.networks[name]


def test_a_network_created_by_ucp_is_removed_after_its_last_container(tmp_path: Path) -> None:
    engine = Engine()
    with kind_network.noted(engine, tmp_path):
        engine.networks["kind"] = "n1"
    engine.users = ["somebody's, stopped"]
    assert not kind_network.remove_if_ours(engine, tmp_path)
    assert engine.networks
    engine.users = []
    assert kind_network.remove_if_ours(engine, tmp_path)
    assert not engine.networks
    assert [each.name for each in tmp_path.iterdir()] == ["kind-network.docker.lock"]


def test_a_network_that_already_existed_is_kept(tmp_path: Path) -> None:
    engine = Engine()
    engine.networks["kind"] = "theirs"
    with kind_network.noted(engine, tmp_path):
        pass
    assert not kind_network.remove_if_ours(engine, tmp_path)
    assert engine.networks == {"kind": "theirs"}


def test_a_network_recreated_by_someone_else_is_kept(tmp_path: Path) -> None:
    engine = Engine()
    with kind_network.noted(engine, tmp_path):
        engine.networks["kind"] = "n1"
    engine.networks["kind"] = "n2"
    assert not kind_network.remove_if_ours(engine, tmp_path)
    assert engine.networks == {"kind": "n2"}
    # The note was deleted with the network that it described.
    engine.networks["kind"] = "n1"
    assert not kind_network.remove_if_ours(engine, tmp_path)


def test_the_network_is_recorded_even_if_the_cluster_creation_fails(tmp_path: Path) -> None:
    engine = Engine()
    try:
        with kind_network.noted(engine, tmp_path):
            engine.networks["kind"] = "n1"
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert kind_network.remove_if_ours(engine, tmp_path)


def test_the_network_is_kept_while_another_cluster_is_being_created(tmp_path: Path) -> None:
    engine = Engine()
    with kind_network.noted(engine, tmp_path):
        engine.networks["kind"] = "n1"
    with kind_network.noted(engine, tmp_path), kind_network.noted(engine, tmp_path):
        # kind found the network, and is about to start its container in it.
        assert not kind_network.remove_if_ours(engine, tmp_path)
        assert engine.networks == {"kind": "n1"}
    assert kind_network.remove_if_ours(engine, tmp_path)
