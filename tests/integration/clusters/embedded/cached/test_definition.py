"""Cached cluster definitions: all that kwokctl writes, without values of the first cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded import kwokctl, programs
from k8s_ucp.clusters.embedded.cached import definition
from k8s_ucp.clusters.embedded.cached.definition import FILES, Particulars
from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder
from k8s_ucp.clusters.embedded.keys import make_keys
from k8s_ucp.clusters.embedded.processes import end_all
from k8s_ucp.tools.toolbox import Toolbox

pytestmark = pytest.mark.engines


class Made:
    """A cluster with stand-ins for its programs: kwokctl defines it, and nothing keeps running."""

    def __init__(self, clusters: Path, name: str, first_port: int, toolbox: Toolbox) -> None:
        ports = {each: first_port + number for number, each in enumerate(PORTS)}
        self.own = Particulars(ClusterFolder(clusters, name), ports, f"{first_port:016x}")
        self.folder = self.own.folder
        found = programs.find(toolbox)
        self.paths = {**dict.fromkeys(found, found["true"]), "kwokctl": found["kwokctl"]}
        self.settings = kwokctl.settings(
            *(self.folder, ports, self.paths, self.own.token), version="v1.35.4", gogc=75
        )
        self.folder.kwok.mkdir(parents=True)
        self.folder.link(self.folder.kwokctl, self.paths["kwokctl"])
        kwokctl.write_settings(self.folder, self.settings)
        make_keys(self.folder)

    def create(self) -> None:
        try:
            kwokctl.create(self.folder, defined=False, timeout=60)
        finally:
            end_all(self.folder, grace=0)

    def read(self) -> dict[str, str]:
        return {each: (self.folder.home / each).read_text("utf-8") for each in FILES}

    def write(self, cache: Path) -> bool:
        return definition.write(self.own, self.settings, self.paths, cache)


def test_definition_equals_that_of_kwokctl_except_for_the_filled_in_values(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    cache = tmp_path / "cache"
    one = Made(tmp_path / "clusters", "core", 20000, toolbox)
    other = Made(tmp_path / "clusters-of-others", "demo-prod", 30000, toolbox)
    assert not one.write(cache)
    one.create()
    definition.keep(one.own, one.settings, cache)
    other.create()
    as_kwokctl_has_it = other.read()
    links = {each: link.readlink() for each, link in programs.links(other.folder).items()}
    for each in FILES:
        (other.folder.home / each).unlink()
    for link in programs.links(other.folder).values():
        link.unlink()
    assert other.write(cache)
    assert other.read() == as_kwokctl_has_it
    assert {each: link.readlink() for each, link in programs.links(other.folder).items()} == links
    assert (other.folder.home / FILES[0]).stat().st_mode & 0o077 == 0


def test_other_settings_have_another_definition(tmp_path: Path, toolbox: Toolbox) -> None:
    one = Made(tmp_path, "core", 20000, toolbox)
    keys = {definition.key_of_all(one.paths, "v1.35.4", 75), definition.key(one.own, one.settings)}
    assert len(keys) == 1
    for version, gogc in (("v1.36.0", 75), ("v1.35.4", 100)):
        keys.add(definition.key_of_all(one.paths, version, gogc))
    newer = {**one.paths, "etcd": Path("/tools/etcd-4/bin/etcd")}
    keys.add(definition.key_of_all(newer, "v1.35.4", 75))
    assert len(keys) == 4


@pytest.mark.parametrize("folder", ["my clusters", "it's", "ünder", "a: b #c"])
def test_path_that_yaml_would_quote_neither_uses_nor_provides_a_definition(
    folder: str, tmp_path: Path, toolbox: Toolbox
) -> None:
    plain, awkward = (
        Made(tmp_path / each, "core", 20000, toolbox) for each in ("clusters", folder)
    )
    cache, other_cache = tmp_path / "cache", tmp_path / "other-cache"
    plain.create()
    definition.keep(plain.own, plain.settings, cache)
    assert not awkward.write(cache)
    for each in FILES:
        (awkward.folder.home / each).write_text("made by kwokctl")
    definition.keep(awkward.own, awkward.settings, other_cache)
    assert not other_cache.exists()


def test_cluster_named_like_a_component_of_kwok_provides_no_definition(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    cache = tmp_path / "cache"
    one = Made(tmp_path / "clusters", "controller", 20000, toolbox)
    one.create()
    definition.keep(one.own, one.settings, cache)
    assert not cache.exists()
