"""Which core clusters a teardown deletes as its last step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.teardown.core import delete_core
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


@pytest.mark.parametrize(
    ("provider", "deleted"),
    [
        ("embedded", ["demo-core"]),
        # Only its nodes were removed before, and the cluster would still be billed.
        ("gke", ["demo-core"]),
        # The stop before it has deleted the cluster, or left it to its owners.
        ("kind", []),
        ("existing", []),
    ],
)
def test_a_core_that_keeps_its_data_is_deleted_once_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, deleted: list[str]
) -> None:
    found: list[str] = []
    fake = SimpleNamespace(info=PROVIDERS[provider], delete=found.append)
    monkeypatch.setattr(StartContext, "provider", fake)
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    context.teardown.kept = ["Postgres quotes-stage"]
    delete_core.run(context, lambda _: None)
    assert found == []
    context.teardown.kept = []
    delete_core.run(context, lambda _: None)
    assert found == deleted


@pytest.mark.parametrize(
    ("abandoned", "deleted"), [([], []), (["demo-core"], ["demo-prod", "demo-stage"])]
)
def test_app_clusters_on_this_machine_are_deleted_with_an_abandoned_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abandoned: list[str], deleted: list[str]
) -> None:
    found: list[str] = []
    fakes = {
        name: SimpleNamespace(
            info=PROVIDERS[name], delete=found.append, names=lambda names=names: names
        )
        for name, names in (("embedded", ["demo-core", "demo-prod", "demo-stage"]), ("gke", ["x"]))
    }
    monkeypatch.setattr(StartContext, "provider", fakes["embedded"])
    monkeypatch.setattr(StartContext, "providers", fakes)
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    context.teardown.abandon = frozenset(abandoned)
    delete_core.run(context, lambda _: None)
    assert found == [*deleted, "demo-core"]
