"""Reading the container engine while others start and delete containers."""

from __future__ import annotations

import json

import pytest

from k8s_ucp.clusters import container_engine
from k8s_ucp.clusters.container_engine import CLUSTER_LABEL, LOOKS, ContainerEngine
from k8s_ucp.errors import CommandFailed


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_engine, "BETWEEN_LOOKS", 0.0)


class Engine(ContainerEngine):
    """Loses one container per attempt, between being listed and being inspected."""

    def __init__(self, ids: list[str], going: int) -> None:
        super().__init__("docker")
        self.ids = ids
        self.going = going

    def run(self, *words: str, timeout: float = 20, stdin: str | None = None) -> str:
        if words[0] == "ps":
            return "\n".join(self.ids)
        if self.going:
            self.going -= 1
            gone = self.ids.pop()
            raise CommandFailed(["docker", *words], 1, f"No such container: {gone}")
        labels = {CLUSTER_LABEL: "demo-core"}
        found = [
            {"Id": each, "Name": f"/{each}", "Config": {"Labels": labels}} for each in words[3:]
        ]
        return json.dumps(found)


@pytest.mark.parametrize("cluster", [None, "demo-core"])
@pytest.mark.parametrize("going", [0, 1, 3])
def test_a_container_deleted_meanwhile_does_not_hide_the_others(
    cluster: str | None, going: int
) -> None:
    engine = Engine(["a", "b", "c", "d"], going)
    assert [each.id for each in engine.nodes(cluster)] == ["a", "b", "c", "d"][: 4 - going]


def test_no_nodes_are_listed_if_no_container_is_left() -> None:
    assert Engine([], 0).nodes() == []
    assert Engine(["a"], 1).nodes("demo-core") == []


def test_an_engine_that_keeps_listing_missing_containers_is_reported() -> None:
    with pytest.raises(CommandFailed, match="No such container: a"):
        Engine(["a"] * (LOOKS + 1), LOOKS).nodes()


def test_a_network_that_cannot_be_inspected_is_not_taken_for_absent() -> None:
    """Whoever creates a missing network records it as its own, and later deletes it."""

    class Networks(ContainerEngine):
        def run(self, *words: str, timeout: float = 20, stdin: str | None = None) -> str:
            if words[:2] == ("network", "ls"):
                return "bridge\nkind\n"
            raise CommandFailed(["docker", *words], 1, "Error response from daemon: i/o timeout")

    assert Networks("docker").network("other") is None
    with pytest.raises(CommandFailed, match="i/o timeout"):
        Networks("docker").network("kind")
