"""Names that shell completion offers besides commands and flags."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from k8s_ucp.cli.topology_selection import (
    app_names,
    cluster_names,
    environment_names,
    mirror_names,
    team_names,
    topology_names,
    upgradable_names,
)
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ucp.yaml").write_text(topology_text(default("demo", ["stage", "prod"], ["echo"])))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_in_ucp_yaml_are_offered(workspace: Path) -> None:
    assert app_names("") == ["echo"]
    assert environment_names("p") == ["prod"]
    assert cluster_names("") == ["core", "stage", "prod"]
    assert upgradable_names("") == ["core", "crossplane", "argocd", "stage", "prod"]
    assert mirror_names("") == team_names("") == topology_names("") == []
    (workspace / "ucp.yaml").write_text("kind: {")
    assert app_names("") == []
    (workspace / "ucp.yaml").unlink()
    assert environment_names("") == []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ucp promote ", "echo"),
        ("ucp promote echo --env p", "prod"),
        ("ucp logs arg", "argocd"),
        ("ucp upgrade crossp", "crossplane"),
        ("ucp status --topology d", "demo"),
        ("ucp start --core emb", "embedded"),
        ("ucp env add eu --cluster dig", "digitalocean"),
    ],
)
def test_bash_completion_offers_the_names_of_the_selected_workspace(
    workspace: Path, line: str, offered: str
) -> None:
    (workspace / ".ucp" / "demo").mkdir(parents=True)
    elsewhere = line.replace("ucp ", f"ucp --workspace {workspace} ", 1)
    for folder, words in ((workspace, line), (Path("/"), elsewhere)):
        place = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run(
            [sys.executable, "-m", "k8s_ucp.cli.main"],
            env={**os.environ, **place, "_UCP_COMPLETE": "complete_bash"},
            cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout.split() == [offered], done.stderr
