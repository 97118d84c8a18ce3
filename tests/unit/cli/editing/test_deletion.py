"""A command acts on the core cluster of its own workspace only."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import remove_applications
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace

CORE = "demo-core"


class ApiServer(HTTPServer):
    """An API server with the Application of one app."""

    names = ("web-stage",)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        items = [{"metadata": {"name": each}} for each in cast(ApiServer, self.server).names]
        self._send({"items": items, "metadata": {}})

    def do_DELETE(self) -> None:
        cast(ApiServer, self.server).names = ()
        self._send({})

    def _send(self, content: object) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def core() -> Iterator[ApiServer]:
    with ApiServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def original(tmp_path: Path, core: ApiServer) -> Workspace:
    """A workspace whose core cluster is running."""
    workspace = Workspace.at(tmp_path / "original")
    workspace.settle_identity()
    state = workspace.state("demo")
    state.make()
    server = f"http://127.0.0.1:{core.server_port}"
    config = {
        "clusters": [{"name": "x", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        "current-context": "x",
    }
    state.kubeconfig(CORE).write_text(json.dumps(config))
    return workspace


def removes(workspace: Workspace, progress: list[str] | None = None) -> bool:
    console = SimpleNamespace(say=lambda _: None)
    call = cast(Invocation, SimpleNamespace(workspace=workspace, console=console))
    report = (progress if progress is not None else []).append
    return remove_applications(call, default(), "web", report)


def test_an_app_is_removed_from_the_core_of_a_workspace(
    original: Workspace, core: ApiServer
) -> None:
    progress: list[str] = []
    assert removes(original, progress)
    assert core.names == ()
    assert progress == ["web-stage", ""]


def test_a_copy_of_a_workspace_removes_nothing_from_the_originals_core(
    original: Workspace, core: ApiServer, tmp_path: Path
) -> None:
    """Its kubeconfigs were copied, too, and an Application is deleted with all that it deployed."""
    copy = Workspace.at(shutil.copytree(original.root, tmp_path / "copy"))
    view = TopologyView(workspace=copy, topology=default())
    for _ in ("before anything is started in the copy", "after an edit of its repositories"):
        assert not removes(copy)
        assert not view.core_responds()
        copy.settle_identity()

    assert core.names == ("web-stage",)
    assert not list(copy.root.glob(".ucp/*/kubeconfigs/*"))
    assert TopologyView(workspace=original, topology=default()).core_responds()


def test_the_error_names_the_workspace_whose_core_it_is(
    original: Workspace, tmp_path: Path
) -> None:
    copy = Workspace.at(shutil.copytree(original.root, tmp_path / "a copy"))
    with pytest.raises(UcpError, match="is a copy of") as caught:
        TopologyView(workspace=copy, topology=default()).kube  # noqa: B018 (a cached property)
    assert f"--workspace {original.root}" in (caught.value.next or "")


def test_a_workspace_that_was_moved_keeps_its_core(original: Workspace, tmp_path: Path) -> None:
    moved = Workspace.at(original.root.rename(tmp_path / "moved"))
    for _ in ("before a start", "after it"):
        assert TopologyView(workspace=moved, topology=default()).core_responds()
        moved.settle_identity()
