"""A topology's two repositories on this machine, created by the real code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Scope
from k8s_ucp.gitops.publish.repositories import (
    Publication,
    PublishResult,
    Resolutions,
    publish,
)
from k8s_ucp.gitops.render.repositories import Rendered, RenderInputs, render
from k8s_ucp.kube import Kube
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import GitopsFolder
from tests import cloud_kinds
from tests.integration.gitops.core_kinds import serving
from tests.unit.gitops.topologies import FACTS, demo


@dataclass
class Repositories:
    """One gitops folder; `person`: folder of somebody with their own clones."""

    folder: GitopsFolder
    person: Path

    def start(
        self,
        topology: Topology | None = None,
        resolutions: Resolutions | None = None,
        removed: Scope = EMPTY_SCOPE,
        whole: bool = False,
        **spec: Any,
    ) -> PublishResult:
        """Publish to the repositories as `ucp start` does; whole: as an edit does."""
        topology = topology or demo(**spec)
        publication = Publication(
            topology,
            self.rendered(topology),
            self.folder,
            resolutions=resolutions or Resolutions(),
            removed=removed,
        )
        return publish(publication, whole=whole)

    def rendered(self, topology: Topology) -> Rendered:
        """Rendered files of both repositories."""
        text = topology.model_dump_json(by_alias=True, indent=1).encode()
        facts = RenderInputs(
            machine=FACTS.machine,
            core_url=self.folder.core_remote.as_uri(),
            apps_url=self.folder.apps_remote.as_uri(),
            topology_file=text,
            engine=FACTS.engine,
            versions=FACTS.versions,
        )
        return render(topology, facts)

    def refs(self) -> dict[str, str]:
        """All refs of both remotes."""
        return {
            f"{remote.name}/{name}": id
            for remote in (self.folder.core_remote, self.folder.apps_remote)
            for name, id in Repository(remote).refs().items()
        }

    def files(self, name: str) -> dict[str, bytes]:
        """Files at the tip of `core` or `apps`."""
        return Repository(self.folder.root / f"{name}.git").read("main")

    def push(self, name: str, changes: dict[str, bytes | None], message: str = "Mine") -> str:
        """Push a person's commit to `core` or `apps`."""
        clone = make_clone(self.person / name, (self.folder.root / f"{name}.git").as_uri())
        clone.fetch()
        commit = clone.write_commit(message, changes, parent=clone.resolve("origin/main"))
        clone.push([RefUpdate("refs/heads/main", commit)])
        return commit

    def edit(self, name: str, path: str, old: str, new: str) -> None:
        """Push a person's commit that replaces a text in one file."""
        text = self.files(name)[path].decode()
        assert old in text
        self.push(name, {path: text.replace(old, new).encode()})

    def commit_in_clone(self, name: str) -> str:
        """Commit the work tree of the user's own clone."""
        return commit_work_tree(Repository(self.folder.root / name))


def commit_work_tree(clone: Repository) -> str:
    """Commit as a person does in a clone; return the commit id."""
    clone.git("add", "--all")
    me = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
    clone.git(*me, "commit", "--quiet", "-m", "Mine")
    return clone.git("rev-parse", "HEAD").decode().strip()


@pytest.fixture
def world(tmp_path: Path, home: Path) -> Repositories:
    return Repositories(GitopsFolder(tmp_path / "a place" / "gitops" / "demo"), tmp_path / "person")


def roots(folder: Path) -> list[Path]:
    """This folder and every folder below it that has a kustomization, sorted."""
    return sorted(each.parent for each in folder.rglob("kustomization.yaml"))


@pytest.fixture(scope="package")
def serving_core(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Kube]:
    """One API server for the tests that send it objects: a chain of tests/scheduling.py.

    Objects that earlier tests apply stay in force; the tests that apply guard rails come last.
    """
    with serving(tmp_path_factory.mktemp("core"), toolbox, cloud_kinds.crds()) as kube:
        yield kube
