"""The previous pins, from which the soak test upgrades, have to follow each new pin."""

from __future__ import annotations

from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.go.compiler import parse_version
from tests import previous_pins


def test_previous_pins_are_older_and_kubernetes_is_one_minor_older() -> None:
    for name, before in previous_pins.VERSIONS.items():
        assert parse_version(before) < parse_version(CATALOGUE[name].version), name
    before, now = (
        parse_version(each)
        for each in (previous_pins.VERSIONS["kubernetes"], CATALOGUE["kubernetes"].version)
    )
    assert (before[0], before[1] + 1) == (now[0], now[1])


def test_programs_of_previous_pins_are_linked_with_their_own_versions() -> None:
    for name, before in previous_pins.VERSIONS.items():
        tool, now = previous_pins.tools()[name], CATALOGUE[name]
        assert tool.version == before
        assert any(before in value for value in tool.variables.values())
        assert not any(now.version in value for value in tool.variables.values())
    minors = {
        value
        for name, value in previous_pins.tools()["kubernetes"].variables.items()
        if name.endswith(".gitMinor")
    }
    assert minors == {previous_pins.VERSIONS["kubernetes"].split(".")[1]}
