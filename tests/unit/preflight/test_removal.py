"""What `ucp stop` removes from an existing core cluster is that of its own workspace only."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.clusters.existing.adoption import MARK, AdoptionRecord, write_record
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Unreachable
from k8s_ucp.preflight import removal
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace

CORE = "demo-core"


class Cluster:
    """An existing cluster with the mark of a workspace."""

    owner = ""
    responds = True

    def __call__(self, _: object) -> Any:
        def find(kind: object, name: str, namespace: str) -> Any:
            if not self.responds:
                raise Unreachable("connection refused")
            assert name == MARK
            return {"data": {"owner": self.owner, "name": CORE}} if self.owner else None

        return SimpleNamespace(find=find)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(removal, "Kube", made)
    monkeypatch.setattr(
        "k8s_ucp.clusters.existing.provider.ExistingProvider.kubeconfig", lambda *_: {}
    )
    return made


@pytest.fixture
def original(tmp_path: Path, cluster: Cluster) -> Workspace:
    """A workspace that has adopted the cluster as its core."""
    workspace = Workspace.at(tmp_path / "original")
    workspace.settle_identity()
    notes = workspace.state("demo").root / "existing"
    notes.mkdir(parents=True)
    write_record(notes / f"{CORE}.json", AdoptionRecord("mine", "uid", "v1.34.0", since="2026"))
    cluster.owner = workspace.machine_id("demo")
    return workspace


def context_of(workspace: Workspace) -> StartContext:
    return StartContext(workspace=workspace, topology=default())


def test_a_stop_finds_what_its_own_workspace_created(original: Workspace, cluster: Cluster) -> None:
    assert removal.inventory_of(context_of(original)) is not None
    cluster.owner = ""
    assert removal.inventory_of(context_of(original)) is not None, "somebody deleted the mark"


def test_a_stop_in_a_copy_of_a_workspace_removes_nothing_of_the_original(
    original: Workspace, tmp_path: Path
) -> None:
    copy = Workspace.at(shutil.copytree(original.root, tmp_path / "copy"))
    for _ in ("before anything is started in the copy", "after that"):
        assert removal.inventory_of(context_of(copy)) is None
        copy.settle_identity()


def test_a_stop_is_refused_if_the_mark_can_not_be_read(
    original: Workspace, cluster: Cluster
) -> None:
    cluster.responds = False
    with pytest.raises(UcpError, match="failed to find out whose cluster demo-core is"):
        removal.inventory_of(context_of(original))
