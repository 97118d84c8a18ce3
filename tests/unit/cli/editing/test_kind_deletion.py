"""CRDs that are deleted with a removed app, and reasons to keep them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.kind_deletion import (
    declared_kinds,
    declaring,
    delete_kinds,
    why_kept,
)
from tests.unit.gitops.topologies import demo

ARGOCD = {"manager": "argocd-controller"}
SERVER = {"manager": "kube-apiserver"}
NAME = "boats.example.org"


def application(name: str, cluster: str, *kinds: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"destination": {"name": cluster}},
        "status": {
            "resources": [
                {"kind": "Deployment", "name": NAME},
                *({"kind": "CustomResourceDefinition", "name": each} for each in kinds),
            ]
        },
    }


@pytest.mark.parametrize(
    ("managers", "declared_by", "objects", "why"),
    [
        ([ARGOCD, SERVER], [], 0, ""),
        ([ARGOCD, SERVER], [], 1, "an object of it exists"),
        ([ARGOCD, SERVER], [], 2, "2 objects of it exist"),
        ([ARGOCD, SERVER], ["fleet-prod"], 0, "fleet-prod declares it too"),
        ([ARGOCD, {"manager": "kubectl"}], [], 0, "kubectl wrote to it"),
        ([], [], 0, "it is not known who created it"),
    ],
)
def test_a_crd_is_kept_while_it_is_used_or_of_unknown_origin(
    managers: list[dict[str, str]], declared_by: list[str], objects: int, why: str
) -> None:
    crd = {"metadata": {"name": NAME, "managedFields": managers}}
    assert why_kept(crd, declared_by, objects) == why


def test_declaring_lists_the_applications_of_the_cluster_that_contain_the_crd() -> None:
    there = [
        application("fleet-prod", "demo-prod", NAME),
        application("fleet-stage", "demo-stage", NAME),
        application("web-prod", "demo-prod"),
    ]
    assert declaring(there, NAME, "demo-prod") == ["fleet-prod"]
    assert declared_kinds(there[0]) == {NAME}
    assert declared_kinds({}) == frozenset()


class ReadyButRefusing(BaseHTTPRequestHandler):
    """An API server that reports ready and answers every other request with 403."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_core_that_refuses_to_list_applications_does_not_fail_a_removal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call, topology = Invocation(folder=tmp_path), demo()
    path = call.workspace.state(topology.name).kubeconfig(topology.core_cluster)
    path.parent.mkdir(parents=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), ReadyButRefusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        about = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [
                {"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
            ],
            "users": [{"name": "a", "user": {}}],
        }
        path.write_text(json.dumps(about))
        delete_kinds(call, topology, {"stage": {NAME}, "prod": set()})
        server.shutdown()
    said = "".join(capfd.readouterr())
    assert f"note: kinds are kept ({NAME}): " in said
