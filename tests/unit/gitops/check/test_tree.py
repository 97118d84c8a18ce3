"""Which files of a repository are read, as what, and which of them belong together."""

from __future__ import annotations

import json
from pathlib import Path

from k8s_ucp.gitops.check.objects.hosts import hosts
from k8s_ucp.gitops.check.tree import Tree
from tests.unit.gitops.check.examples import OVERLAY, tree


def test_items_of_a_list_are_read_even_without_a_kind() -> None:
    files = {
        "apps/web/overlays/stage/a.yaml": "kind: RoleList\nitems: [{metadata: {name: a}}]\n",
        "apps/web/overlays/stage/b.yaml": "items: [{metadata: {name: b}}]\n",
    }
    assert [each for _, each in tree(files).plain()] == [{"metadata": {"name": "a"}}]


def test_a_link_by_which_argo_cd_recognizes_an_app_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "apps/web/overlays/stage"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("a: token\n")
    (folder / "mine.txt").write_text("resources: [far.yaml]\n")
    (folder / "kustomization.yaml").symlink_to("mine.txt")
    (folder / "far.yaml").symlink_to("mine.txt")
    found = Tree.of(tmp_path)
    assert found.overlays == [("apps/web/overlays/stage", "web", "stage")]
    assert "apps/web/overlays/stage/far.yaml" not in found.files
    for target in ("/etc/hostname", "kustomization.yaml", tmp_path / ".git" / "config", "none"):
        (folder / "kustomization.yaml").unlink()
        (folder / "kustomization.yaml").symlink_to(target)
        assert Tree.of(tmp_path).overlays == []


def test_what_argo_cd_applies_from_a_directory_is_read(tmp_path: Path) -> None:
    """JSON, hidden files, links, folders of any name, and lists of any kind."""
    folder, beside = tmp_path / "apps/web/overlays/stage", tmp_path / "apps/api/overlays/stage"
    for each in (folder / "node_modules", beside):
        each.mkdir(parents=True)
    ingress = "{kind: Ingress, metadata: {name: %s}, spec: {rules: [{host: %s.example.org}]}}\n"
    (folder / "a.json").write_text(
        json.dumps({"kind": "Ingress", "spec": {"rules": [{"host": "a"}]}})
    )
    (folder / ".b.yaml").write_text(ingress % ("b", "b"))
    (folder / "node_modules/c.yml").write_text(ingress % ("c", "c"))
    (folder / "d.yaml").write_text(f"kind: Any\nitems: [{ingress % ('d', 'd')}, 5]\n")
    (folder / "data.txt").write_text(ingress % ("e", "e"))
    (folder / "e.yaml").symlink_to("data.txt")
    (folder / "f.yaml").symlink_to("/etc/hostname")
    (folder / "package.json").write_text('{"name": "web"}')
    (folder / ".argocd-source.yaml").write_text("kind: none\n")
    (beside / "kustomization.yaml").write_text("resources: []\n")
    (beside / "far.yaml").symlink_to("../../../web/overlays/stage/data.txt")
    (beside / "g.json").write_text('{"kind": "Ingress"}')
    (tmp_path / "package.json").write_text('{"kind": "none"}')
    found = [
        (path.removeprefix("apps/web/overlays/stage/"), item)
        for path, item in Tree.of(tmp_path).plain()
    ]
    assert {path: [host for host, _ in hosts(item)] for path, item in found} == {
        "a.json": ["a"],
        ".b.yaml": ["b.example.org"],
        "node_modules/c.yml": ["c.example.org"],
        "d.yaml": ["d.example.org"],
        "e.yaml": ["e.example.org"],
    }


def test_settings_that_only_argo_cd_applies_are_listed() -> None:
    settings = ".argocd-source.yaml"
    kustomize = "kustomize: {patches: [{patch: '{}'}]}\n"
    files = {
        "apps/a/overlays/stage/kustomization.yaml": "",
        f"apps/a/overlays/stage/{settings}": kustomize,
        "apps/b/overlays/stage/Chart.yaml": "name: b\n",
        f"apps/b/overlays/stage/{settings}": "helm: {releaseName: b, fileParameters: []}\n",
        "apps/c/overlays/stage/c.yaml": "",
        f"apps/c/overlays/stage/{settings}": "directory: {recurse: true}\n",
        "apps/c/overlays/stage/.argocd-source-c-stage.yaml": "directory: {recurse: false}\n",
        "apps/d/overlays/stage/kustomization.yaml": "",
        f"apps/d/overlays/stage/{settings}": "directory: {recurse: true}\n",
        f"apps/d/base/{settings}": kustomize,
        f"apps/e/overlays/stage/{settings}": "a: [",
    }
    assert [(path.split("/")[1], key) for path, _, key in tree(files).settings] == [
        ("a", "kustomize"),
        ("b", "helm.fileParameters"),
        ("c", "directory"),
        ("d", "directory"),
    ]


def test_roots_are_folders_that_no_kustomization_includes() -> None:
    files = {
        "apps/web/base/kustomization.yaml": "resources: [x.yaml]",
        OVERLAY: "resources: [../../base]",
        "clusters/kustomization.yml": "resources: [overlays/a]",
        "clusters/overlays/a/Kustomization": "{}",
        "plain/x.yaml": "kind: A",
        "clusters/base/b.yaml": "kind: B",
    }
    found = tree(files)
    assert found.roots == ["apps/web/overlays/stage", "clusters"]
    assert found.overlays == [("apps/web/overlays/stage", "web", "stage")]
    assert [path for path, _ in found.plain()] == ["plain/x.yaml"]


def test_apps_are_checked_if_what_they_include_has_changed() -> None:
    files = {
        "apps/web/overlays/stage/kustomization.yaml": "resources: [../../base]\n",
        "apps/web/base/kustomization.yaml": "resources: ['../../../shared//']\n",
        "apps/api/overlays/stage/kustomization.yaml": "resources: [../../../web/base]\n",
        "apps/own/overlays/stage/kustomization.yaml": "resources: [https://g/x?ref=v1, a.yaml]\n",
        "shared/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: ../p.yaml}]\n",
    }
    found = tree(files)
    assert found.apps_using(["shared/a.yaml"]) == {"web", "api"}
    assert found.apps_using(["shared/kustomization.yaml"]) == {"web", "api"}
    assert found.apps_using(["p.yaml", "README.md"]) == {"web", "api"}
    assert found.apps_using(["apps/web/base/kustomization.yaml"]) == {"web", "api"}
    assert found.apps_using(["a.yaml", "shared/other.yaml", "*"]) == set()


def test_submodules_with_apps_are_listed() -> None:
    text = '[submodule "a"]\n\tpath = apps/web/overlays/stage\n\turl = https://g/x\n'
    text += '[submodule "b"]\n  path="./apps/api"\r\n[submodule "c"]\n  path = docs\n'
    found = tree({".gitmodules": text}).submodules
    assert found == ["apps/api", "apps/web/overlays/stage"]
    assert tree({}).submodules == []


def test_apps_rendered_by_jsonnet_are_listed() -> None:
    place = "apps/{}/overlays/prod"
    files = {
        f"{place.format('made')}/lib/web.jsonnet": b"{}",
        f"{place.format('chart')}/Chart.yaml": b"name: chart",
        f"{place.format('chart')}/files/board.jsonnet": b"{}",
        f"{place.format('plain')}/web.yaml": b"kind: Other",
    }
    assert Tree(files).jsonnet == ["made"]
