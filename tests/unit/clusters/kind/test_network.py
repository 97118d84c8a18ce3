"""kind's network goes only when we brought it and nobody is in it."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind import network as kind_network


class Engine(ContainerEngine):
    """Networks by name, and who is in them."""

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


def test_what_we_brought_goes_with_the_last_container(tmp_path: Path) -> None:
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


def test_what_was_there_stays(tmp_path: Path) -> None:
    engine = Engine()
    engine.networks["kind"] = "theirs"
    with kind_network.noted(engine, tmp_path):
        pass
    assert not kind_network.remove_if_ours(engine, tmp_path)
    assert engine.networks == {"kind": "theirs"}


def test_one_that_others_made_anew_stays(tmp_path: Path) -> None:
    engine = Engine()
    with kind_network.noted(engine, tmp_path):
        engine.networks["kind"] = "n1"
    engine.networks["kind"] = "n2"
    assert not kind_network.remove_if_ours(engine, tmp_path)
    assert engine.networks == {"kind": "n2"}
    # And the note does not outlive what it was about.
    engine.networks["kind"] = "n1"
    assert not kind_network.remove_if_ours(engine, tmp_path)


def test_it_is_noted_even_when_the_creation_fails(tmp_path: Path) -> None:
    engine = Engine()
    try:
        with kind_network.noted(engine, tmp_path):
            engine.networks["kind"] = "n1"
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert kind_network.remove_if_ours(engine, tmp_path)


def test_it_stays_while_another_cluster_is_being_made(tmp_path: Path) -> None:
    engine = Engine()
    with kind_network.noted(engine, tmp_path):
        engine.networks["kind"] = "n1"
    with kind_network.noted(engine, tmp_path), kind_network.noted(engine, tmp_path):
        # kind has seen it, and its container is only just coming.
        assert not kind_network.remove_if_ours(engine, tmp_path)
        assert engine.networks == {"kind": "n1"}
    assert kind_network.remove_if_ours(engine, tmp_path)
