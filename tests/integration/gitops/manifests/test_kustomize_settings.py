"""Kustomize settings of an Application, compared with `kustomize edit`, which Argo CD runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.imports.argocd.kustomize_settings import with_settings
from k8s_ucp.tools.toolbox import Toolbox

SHA = "sha256:" + "ab" * 32
FILES = {
    "kustomization.yaml": (
        "# ours\nresources: [all.yaml]\nnamespace: old\nnamePrefix: a-\n"
        "images:\n- {name: example.org/web, newName: mirror/web, newTag: '1'}\n"
        "replicas: [{name: web, count: 2}]\ncommonLabels: {team: shop}\n"
    ),
    "all.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
        "    spec:\n      containers:\n      - {name: web, image: 'example.org/web:0'}\n"
        "      - {name: db, image: 'db:5000/x/db:0'}\n"
    ),
    "more/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "commonAnnotations: {more: 'yes'}\n"
    ),
}
CASES: list[tuple[dict[str, Any], list[list[str]]]] = [
    ({"images": ["example.org/web:12e4567"]}, [["set", "image", "example.org/web:12e4567"]]),
    ({"namePrefix": "b-", "nameSuffix": "-c"}, [["set", "nameprefix", "--", "b-"]]),
    ({"namespace": "new"}, [["set", "namespace", "new"]]),
    ({"images": ["example.org/web:2"]}, [["set", "image", "example.org/web:2"]]),
    (
        {"images": ["db:5000/x/db=other/db:3", f"example.org/web@{SHA}"]},
        [["set", "image", "db:5000/x/db=other/db:3", f"example.org/web@{SHA}"]],
    ),
    ({"images": ["example.org/web=other/web"]}, [["set", "image", "example.org/web=other/web"]]),
    (
        {"images": [f"db:5000/x/db=other/db:3@{SHA}"]},
        [["set", "image", f"db:5000/x/db=other/db:3@{SHA}"]],
    ),
    ({"replicas": [{"name": "web", "count": "5"}]}, [["set", "replicas", "web=5"]]),
    ({"commonLabels": {"tier": "x"}}, [["add", "label", "tier:x"]]),
    (
        {"commonLabels": {"team": "y"}, "forceCommonLabels": True},
        [["add", "label", "--force", "team:y"]],
    ),
    (
        {"commonLabels": {"tier": "x"}, "labelWithoutSelector": True},
        [["add", "label", "--without-selector", "tier:x"]],
    ),
    (
        {
            "commonLabels": {"tier": "x"},
            "labelWithoutSelector": True,
            "labelIncludeTemplates": True,
        },
        [["add", "label", "--without-selector", "--include-templates", "tier:x"]],
    ),
    ({"commonAnnotations": {"a": "true"}}, [["add", "annotation", "a:true"]]),
    ({"components": ["more"]}, [["add", "component", "more"]]),
]


@pytest.mark.parametrize(("settings", "edits"), CASES)
def test_settings_are_built_as_argo_cd_builds_them(
    settings: dict[str, Any], edits: list[list[str]], tmp_path: Path, toolbox: Toolbox
) -> None:
    program = toolbox.path("kustomize")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for path, text in FILES.items():
        for folder in (ours, theirs):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    if "nameSuffix" in settings:
        edits = [*edits, ["set", "namesuffix", "--", settings["nameSuffix"]]]
    for words in edits:
        subprocess.run([program, "edit", *words], cwd=theirs, check=True, capture_output=True)
    file = ours / "kustomization.yaml"
    new = with_settings(file.read_bytes(), file.name, settings, lambda each: each == "more")
    file.write_bytes(new)
    built = [
        subprocess.run([program, "build", each], check=True, capture_output=True).stdout
        for each in (ours, theirs)
    ]
    assert built[0] == built[1]
    assert b"# ours" in new or not settings.keys() <= {"components", "commonAnnotations"}
