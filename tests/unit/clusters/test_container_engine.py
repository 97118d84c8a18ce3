"""What is read of the engine while others use it too."""

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
    """One whose containers go, one a look, between being listed and being inspected."""

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
def test_a_container_that_goes_meanwhile_hides_no_other(cluster: str | None, going: int) -> None:
    engine = Engine(["a", "b", "c", "d"], going)
    assert [each.id for each in engine.nodes(cluster)] == ["a", "b", "c", "d"][: 4 - going]


def test_none_is_left() -> None:
    assert Engine([], 0).nodes() == []
    assert Engine(["a"], 1).nodes("demo-core") == []


def test_an_engine_that_lists_what_it_can_not_show_is_told() -> None:
    with pytest.raises(CommandFailed):
        Engine(["a"] * (LOOKS + 1), LOOKS).nodes()
