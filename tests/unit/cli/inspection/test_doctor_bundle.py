"""Secrets that a support bundle must not contain, collected before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli.inspection.doctor_bundle import _of_files
from k8s_ucp.context import TopologyView
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


@pytest.mark.parametrize("name", ["aws", "forge"])
def test_the_environment_variable_of_any_credential_is_redacted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "canary-5511-token")
    topology = demo(credentials={name: {"env": "A_TOKEN"}})
    context = TopologyView(workspace=Workspace.at(tmp_path), topology=topology)
    assert "canary-5511-token" in set(_of_files(context))
