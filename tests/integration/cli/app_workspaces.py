"""Workspaces to which tests add apps, and what these are made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from k8s_ucp.cli.main import app
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from tests.person import commit_all, git

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:1.0.0"}]}
"""


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "ucp.yaml").write_text(topology_text(default()))
    return folder


def ucp(workspace: Path, *words: str, code: int = 0) -> str:
    """Run a command, which must end with this exit code, and return its output."""
    result = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def commit(folder: Path, *words: str) -> str:
    """Commit everything in a folder, as a repository, and return the commit id."""
    commit_all(folder)
    if words:
        git(folder, *words)
    return git(folder, "rev-parse", "HEAD")


def rendered(workspace: Path) -> dict[str, str]:
    """Render the app repository: {path: content}."""
    out = workspace / "out"
    ucp(workspace, "render", "--out", str(out))
    return {
        each.relative_to(out / "apps").as_posix(): each.read_text()
        for each in (out / "apps").rglob("*")
        if each.is_file()
    }


def everything(workspace: Path) -> dict[str, bytes]:
    """{path: content} of a workspace, except for logs and what git notes about a fetch."""
    return {
        str(each.relative_to(workspace)): each.read_bytes()
        for each in workspace.rglob("*")
        if each.is_file() and ".ucp" not in each.parts and each.name != "FETCH_HEAD"
    }
