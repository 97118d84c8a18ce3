"""Images of the container engine are loaded into nodes once; their archives are then deleted."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode
from k8s_ucp.clusters.images import mirrored
from k8s_ucp.clusters.kind.images import KindImages
from k8s_ucp.clusters.kind.node_import import snapshotter_of
from k8s_ucp.clusters.kind.nodes import KindNodes
from k8s_ucp.clusters.kind.program import KindProgram, at_hand
from k8s_ucp.errors import CommandFailed, UcpError

CONFIGURED = """\
version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'native'
"""


class Engine(ContainerEngine):
    """Images by name; an archive contains the names of its images."""

    def __init__(self) -> None:
        super().__init__("docker")
        self.images = {"a:1": "x", "b:1": "y"}
        self.saved: list[list[str]] = []
        self.executed: list[tuple[str, ...]] = []
        self.copied: list[str] = []
        self.config = CONFIGURED
        self.failing: set[str] = {"containerd"}

    def image_id(self, image: str) -> str | None:
        return self.images.get(image)

    def save_images(self, images: Sequence[str], archive: Path, *, timeout: float) -> None:
        self.saved.append(list(images))
        archive.write_text(" ".join(images))

    def execute(self, node: ContainerNode, *words: str, timeout: float = 20) -> str:
        self.executed.append(words)
        if words[0] in self.failing:
            raise CommandFailed(words, 1, "flag provided but not defined")
        return self.config if words[0] == "containerd" else ""

    def copy_in(self, node: ContainerNode, file: Path, path: str, *, timeout: float) -> None:
        self.copied.append(file.read_text())


class Nodes(KindNodes):
    """One node, in three stages: absent, being created (no note), created."""

    def __init__(self) -> None:
        super().__init__(ContainerEngine("docker"), "us")
        self.there, self.note = False, None  # type: bool, dict[str, Any] | None
        self.running = True

    def of(self, cluster: str | None = None) -> list[ContainerNode]:
        return [ContainerNode("1", "n", "core", self.running, "us")] if self.there else []

    def read_note(self, node: ContainerNode) -> dict[str, Any] | None:
        return self.note

    def write_note(self, nodes: Sequence[ContainerNode], note: dict[str, Any]) -> None:
        self.note = note


class Program(KindProgram):
    def __init__(self) -> None:
        super().__init__(None, ContainerEngine("docker"))
        self.loaded: list[str] = []

    def load_archive(self, name: str, path: str, *, timeout: float) -> None:
        self.loaded.append(Path(path).read_text())


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine, self.nodes, self.program = Engine(), Nodes(), Program()
        self.images = KindImages(folder, self.engine, self.program, self.nodes)

    def save(self, *images: str) -> None:
        self.images.save("core", images, lambda line: None)

    def load(self, *images: str) -> None:
        self.images.load("core", images, lambda line: None)

    def files(self) -> list[Path]:
        return [each for each in self.folder.rglob("*") if each.is_file()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("being_made", [False, True])
def test_images_saved_before_the_node_exists_are_loaded(machine: Machine, being_made: bool) -> None:
    machine.nodes.there = being_made
    machine.save("b:1", "a:1", "elsewhere:1")
    assert machine.engine.saved == [["a:1", "b:1"]]
    machine.nodes.there, machine.nodes.note = True, {"archives": {}}
    machine.load("a:1", "b:1", "elsewhere:1")
    assert machine.program.loaded == ["a:1 b:1"]
    assert machine.engine.saved == [["a:1", "b:1"]]
    assert machine.files() == []
    assert machine.nodes.note == {"archives": {}, "images": {"a:1": "x", "b:1": "y"}}


@pytest.mark.parametrize("running", [False, True])
def test_a_rerun_loads_only_changed_images(machine: Machine, running: bool) -> None:
    machine.nodes.there, machine.nodes.note = True, {}
    machine.load("a:1", "b:1")
    machine.nodes.running = running
    machine.save("a:1", "b:1")
    machine.load("a:1", "b:1")
    assert machine.program.loaded == ["a:1 b:1"]
    machine.engine.images["b:1"] = "newer"
    machine.save("a:1", "b:1")
    machine.load("a:1", "b:1")
    assert machine.program.loaded == ["a:1 b:1", "b:1"]


def test_an_image_that_changed_after_it_was_saved_is_saved_again(machine: Machine) -> None:
    machine.save("a:1")
    machine.engine.images["a:1"] = "newer"
    machine.nodes.there, machine.nodes.note = True, {}
    machine.load("a:1")
    assert machine.engine.saved == [["a:1"], ["a:1"]]
    assert machine.files() == []


def test_a_note_with_other_content_counts_as_one_without_images(machine: Machine) -> None:
    machine.nodes.there, machine.nodes.note = True, {"images": ["a:1"], "archives": "none"}
    machine.load("a:1")
    assert machine.program.loaded == ["a:1"]
    archive = machine.folder / "more.tar"
    archive.write_text("more")
    nodes, note = machine.nodes.of(), machine.nodes.note
    machine.images.load_archives(nodes, note, [archive], lambda line: None, timeout=1)
    assert machine.program.loaded == ["a:1", "more"]


def test_archives_of_an_interrupted_start_are_deleted(machine: Machine) -> None:
    machine.save("a:1")
    machine.engine.images.clear()
    machine.save("a:1")
    assert machine.files() == []


def test_loading_images_into_an_absent_cluster_fails(machine: Machine) -> None:
    with pytest.raises(UcpError, match="the kind cluster core does not exist"):
        machine.load("a:1")


def test_containerd_in_the_node_imports_the_archive(machine: Machine) -> None:
    machine.engine.failing = set()
    machine.nodes.there, machine.nodes.note = True, {}
    machine.load("a:1")
    assert machine.engine.copied == ["a:1"]
    assert machine.program.loaded == []
    _, read, removed = machine.engine.executed
    assert read[:4] == ("ctr", "--namespace=k8s.io", "images", "import")
    assert "--snapshotter=native" in read
    assert removed == ("rm", "-f", read[-1])


def test_kind_loads_an_archive_that_containerd_fails_to_import(machine: Machine) -> None:
    machine.engine.failing = {"ctr"}
    machine.nodes.there, machine.nodes.note = True, {}
    machine.load("a:1")
    assert machine.program.loaded == ["a:1"]
    assert machine.engine.executed[-1][0] == "rm"


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (CONFIGURED, "native"),
        (CONFIGURED.replace("3", "4"), "native"),
        ('version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "x"\n', "x"),
        (CONFIGURED.replace("3", "2"), None),
        (CONFIGURED.replace("native", ""), None),
        ("version = 3\n", None),
        ("plugins = 3\n", None),
        ("version = 'new'\n", None),
        ("version = [3]\n", None),
    ],
)
def test_the_snapshotter_is_read_from_the_containerd_config(
    config: str, wanted: str | None
) -> None:
    assert snapshotter_of(tomllib.loads(config)) == wanted


class Registry(Engine):
    """Images that can be pulled."""

    def __init__(self, *there: str) -> None:
        super().__init__()
        self.there = there

    def run(self, *words: str, timeout: float = 20, stdin: str | None = None) -> str:
        if words[0] != "pull" or words[1] not in self.there:
            raise CommandFailed(["docker", *words], 1, "manifest unknown")
        self.images[words[1]] = "pulled"
        return ""


@pytest.mark.parametrize(
    ("here", "wanted"),
    [
        ("", "mirror.test/kindest/node:v1"),
        ("kindest/node:v1", "kindest/node:v1"),
        ("mirror.test/kindest/node:v1", "mirror.test/kindest/node:v1"),
    ],
)
def test_the_node_image_is_pulled_from_the_mirror_unless_it_is_present(
    here: str, wanted: str
) -> None:
    engine = Registry("mirror.test/kindest/node:v1", "kindest/node:v1")
    engine.images[here] = "x"
    names = ("kindest/node:v1", mirrored("kindest/node:v1", "mirror.test"))
    assert at_hand(engine, *names, lambda line: None, timeout=1) == wanted
    assert engine.has_image(wanted)


def test_a_node_image_that_fails_to_pull_is_reported() -> None:
    with pytest.raises(UcpError, match="failed to pull the node image node:v1: manifest unknown"):
        at_hand(Registry(), "node:v1", "node:v1", lambda line: None, timeout=1)
