"""A repository's files: of a large one, none is looked up or parsed more often than needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from k8s_ucp.gitops.imports import trees
from k8s_ucp.gitops.imports.beside_applications import declares_applications
from k8s_ucp.gitops.imports.trees import RepositoryTree
from tests.unit.gitops.imports.repository_files import overlay, place

FILES = {
    "base/kustomization.yaml": "nameSuffix: -one\n",
    "web/kustomization.yaml": overlay("../base"),
}


def test_a_path_is_looked_up_once_if_it_has_no_file() -> None:
    there, looked_up = place(FILES), Counter[str]()

    def read(path: str) -> bytes | None:
        looked_up[path] += 1
        return there.read(path)

    tree = RepositoryTree(replace(there, read=read))
    for _ in range(3):
        assert set(tree.closure(["web"])) == {*FILES}
        assert tree.taken_in("web") == ["base"]
    assert {
        each: count for each, count in looked_up.items() if each not in FILES and count > 1
    } == {}
    assert looked_up["base/-one"] == 1


def test_a_file_is_read_once_if_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository's files are read by each layout and for each environment."""
    monkeypatch.setattr(trees, "_MOST_KEPT", 100)
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    there = place({"a.yaml": text, "b.yaml": text.replace("settings", "others"), "c.yaml": ""})
    read: Counter[str] = Counter()

    def counted(path: str) -> bytes | None:
        read[path] += 1
        return there.read(path)

    tree = RepositoryTree(replace(there, read=counted))
    for name in ("settings", "others", "settings"):
        assert [each.name for each in tree.config_maps(name)] == [name]
    assert read["a.yaml"] == read["c.yaml"] == 1
    assert read["b.yaml"] > 1, "there was room for one of them"


def test_a_kustomization_is_parsed_once() -> None:
    tree = RepositoryTree(place(FILES))
    assert tree.kustomization("base") == {"nameSuffix": "-one"}
    assert tree.kustomization("base") is tree.kustomization("base")
    assert tree.kustomization("nowhere") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"apiVersion": "argoproj.io/v1alpha1", "kind" : "AppProject"}', True),
        ("kind:   'ApplicationSet'\napiVersion: argoproj.io/v1alpha1\n", True),
        ("kind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: cluster}}\n", True),
        ("kind: Rollout\napiVersion: argoproj.io/v1alpha1\n", False),
        ("kind: Application\napiVersion: app.k8s.io/v1beta1\n# argoproj.io/\n", False),
    ],
)
def test_objects_that_only_argo_cd_reads(text: str, expected: bool) -> None:
    assert declares_applications(text.encode(), "any.yaml") is expected
