"""The builds that tests share: one is run again if anything that kustomize reads changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.gitops.manifests.build_many import build_many
from tests.remembered_builds import remembered_builds

OVERLAY = "apps/web/overlays/stage"
FILES = {
    "apps/web/base/kustomization.yaml": "resources: [web.yaml]\n",
    "apps/web/base/web.yaml": "kind: ConfigMap\n",
    f"{OVERLAY}/kustomization.yaml": "resources: [../../base]\n",
    "apps/other/base/kustomization.yaml": "resources: []\n",
}


@pytest.mark.parametrize(
    ("path", "content", "builds"),
    [
        ("apps/other/base/kustomization.yaml", "resources: [a.yaml]\n", 1),
        ("ucp.yaml", "kind: Topology\n", 1),
        ("apps/web/base/web.yaml", "kind: Secret\n", 2),
        ("apps/web/base/more.yaml", "kind: Secret\n", 2),
        (f"{OVERLAY}/kustomization.yaml", "resources: [../../base, ../../../other/base]\n", 2),
        ("apps/web/base/kustomization.yaml", "resources: ['https://example.org/web.yaml']\n", 3),
    ],
)
def test_a_folder_is_built_again_if_its_files_changed(
    tmp_path: Path, path: str, content: str, builds: int
) -> None:
    program = tmp_path / "kustomize"
    program.write_text(f"#!/bin/sh\necho built >>'{tmp_path}/builds'\necho 'kind: ConfigMap'\n")
    program.chmod(0o700)
    root = tmp_path / "apps"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with remembered_builds():
        first = build_many(program, root, [[OVERLAY]])
        (root / path).write_text(content)
        again = [build_many(program, root, [[OVERLAY]]) for _ in range(2)]
    assert again == [first, first]
    assert first.objects == {OVERLAY: [{"kind": "ConfigMap"}]}
    assert (tmp_path / "builds").read_text() == builds * "built\n"
