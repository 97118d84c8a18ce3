"""The kustomize in front of the real one, for Argo CD's programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from k8s_ucp.components.host.guarded_programs import write_kustomize
from k8s_ucp.gitops.manifests.kustomize import git_protocols
from k8s_ucp.tools.toolbox import Toolbox
from tests.person import commit_all
from tests.raw_server import server

SECRET = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {word: s3cret}}\n"


def test_a_remote_base_is_no_repository_of_this_machine(tmp_path: Path, toolbox: Toolbox) -> None:
    private, app = tmp_path / "private", tmp_path / "app"
    for folder, resource in ((private, "x.yaml"), (app, f"file://{private}?ref=main")):
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(f"resources: ['{resource}']\n")
    (private / "x.yaml").write_text(SECRET)
    commit_all(private)
    (guarded := tmp_path / "a guard").mkdir(mode=0o700)

    def build(*transports: str) -> str:
        write_kustomize(guarded, toolbox.path("kustomize"), git_protocols(transports))
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        argv = [guarded / "kustomize", "build", app]
        done = subprocess.run(
            argv, cwd=app, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert "s3cret" in build("file")
    for transports in ((), ("http", "https://example.org/x.git"), ("ext",)):
        said = build(*transports)
        assert "s3cret" not in said
        assert "transport 'file' not allowed" in said


def test_a_file_is_not_loaded_over_plain_http(tmp_path: Path, toolbox: Toolbox) -> None:
    """Such as an address that only this machine can reach."""
    with server(lambda connection: connection.sendall(b"HTTP/1.0 200 OK\r\n\r\ns3cret")) as (
        url,
        requests,
    ):
        (tmp_path / "kustomization.yaml").write_text(
            f"configMapGenerator: [{{name: x, files: ['word={url}/word']}}]\n"
        )
        (guarded := tmp_path / "guard").mkdir(mode=0o700)
        write_kustomize(guarded, toolbox.path("kustomize"), git_protocols(("http",)))
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        argv = [guarded / "kustomize", "build", tmp_path]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert "refusing to use HTTP_PROXY" in done.stderr
    assert not requests and "s3cret" not in done.stdout


def test_a_base_is_no_folder_outside_of_the_repository(tmp_path: Path, toolbox: Toolbox) -> None:
    root, private = tmp_path / "checkouts/one", tmp_path / "private"
    overlay, base = root / "apps/web/overlays/stage", root / "apps/web/base"
    for folder in (overlay, base, private):
        folder.mkdir(parents=True)
        (folder / "kustomization.yaml").write_text("resources: [x.yaml]\n")
        (folder / "x.yaml").write_text(SECRET if folder == private else SECRET.replace("s3", "my"))
    (guarded := tmp_path / "guard").mkdir(mode=0o700)
    write_kustomize(guarded, toolbox.path("kustomize"), git_protocols(()))

    def build(folder: Path, text: str) -> str:
        (folder / "kustomization.yaml").write_text(text)
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        argv = ["/bin/sh", guarded / "kustomize", "build", overlay]
        done = subprocess.run(
            argv, cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    inside = "resources: [../../base]\n"
    assert "mycret" in build(overlay, inside)
    outside = "../" * 6 + "private"
    for text in (f"resources: [{outside}]", f'Components: ["{outside}"]', "resources: [../../base"):
        said = build(overlay, text)
        assert "s3cret" not in said and "refused" in said
    # Not only in the overlay itself.
    build(overlay, inside)
    said = build(base, f"resources: [{'../' * 5}private]")
    assert "kustomization.yaml includes ../../../../../private, which is outside" in said
