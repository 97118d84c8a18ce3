"""The kustomize in front of the real one, for Argo CD's programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from k8s_ucp.components.host.guarded_programs import write_kustomize
from k8s_ucp.gitops.manifests.kustomize import git_protocols
from k8s_ucp.tools.toolbox import Toolbox

SECRET = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {word: s3cret}}\n"


def test_a_remote_base_is_no_repository_of_this_machine(tmp_path: Path, toolbox: Toolbox) -> None:
    private, app = tmp_path / "private", tmp_path / "app"
    for folder, resource in ((private, "x.yaml"), (app, f"file://{private}?ref=main")):
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(f"resources: ['{resource}']\n")
    (private / "x.yaml").write_text(SECRET)
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet", "-b", "main"), ("add", "."), ("commit", "--quiet", "-mx")):
        subprocess.run(["git", "-C", private, *person, *words], check=True)
    (guarded := tmp_path / "a guard").mkdir(mode=0o700)

    def build(*transports: str) -> str:
        write_kustomize(guarded, toolbox.path("kustomize"), git_protocols(transports))
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        argv = [guarded / "kustomize", "build", app]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "s3cret" in build("file")
    for transports in ((), ("http", "https://example.org/x.git"), ("ext",)):
        said = build(*transports)
        assert "s3cret" not in said
        assert "transport 'file' not allowed" in said
