"""What kustomizations take in: images as they come out, and folders beside their own."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.manifests.own import images_in
from k8s_ucp.gitops.manifests.reachable import FolderTree, images_of, moved_up, taken_in

DEPLOYMENT = (
    b"kind: Deployment\nspec: {containers: [{image: 'reg/web:1'}, {image: 'reg/side:2'}]}\n"
)
TREE = {
    "base/kustomization.yml": b"resources: [web.yaml]\nimages: [{name: reg/side, newTag: '3'}]\n",
    "base/web.yaml": DEPLOYMENT,
    "overlays/prod/kustomization.yaml": (
        b"resources: [../../base]\ncomponents: [../../parts/tls]\n"
        b"images: [{name: reg/web, newName: far/web, newTag: '5'}]\n"
    ),
    "overlays/pinned/Kustomization": b"resources: [../../base]\n"
    b"images: [{name: reg/web, digest: 'sha256:1'}]\n",
    "parts/tls/kustomization.yaml": b"kind: Component\nconfigMapGenerator:\n"
    b"  - {name: x, files: [conf=../../files/tls.conf]}\n",
    "files/tls.conf": b"x",
    "unused/kustomization.yaml": b"",
}


def place(files: dict[str, bytes]) -> FolderTree:
    def names(folder: str) -> list[str]:
        return [each[len(folder) + 1 :] for each in files if each.startswith(f"{folder}/")]

    return FolderTree(names, files.get)


def test_images_are_those_that_come_out() -> None:
    assert images_of(TREE, "base") == [("reg/side", "3"), ("reg/web", "1")]
    assert images_of(TREE, "overlays/prod") == [("far/web", "5"), ("reg/side", "3")]
    assert images_of(TREE, "overlays/pinned") == [("reg/side", "3"), ("reg/web", "@sha256:1")]


def test_a_component_changes_what_its_parent_has() -> None:
    files = {
        **TREE,
        "kustomization.yaml": b"resources: [base]\ncomponents: [release]\n",
        "release/kustomization.yaml": b"kind: Component\nimages: [{name: reg/web, newTag: '7'}]\n"
        b"patches: [{patch: '[{op: add, path: /a/-, value: {image: reg/more:1}}]'}]\n",
    }
    found = [("reg/more", "1"), ("reg/side", "3"), ("reg/web", "7")]
    assert images_of(files) == found


@pytest.mark.parametrize(
    "patch",
    [
        "{spec: {containers: [{image: 'reg/web:9'}]}}",
        "[{op: replace, path: /a/image, value: reg/web:9}]",
    ],
)
def test_what_a_patch_sets_otherwise_is_left_to_it(patch: str) -> None:
    inline = f"resources: [base]\npatches:\n  - patch: |-\n      {patch}\n"
    files = {**TREE, "kustomization.yaml": inline.encode()}
    assert images_of(files) == [("reg/side", "3")]
    files |= {"kustomization.yaml": b"resources: [base]\npatches: [{path: p.yaml}]\n"}
    assert images_of({**files, "p.yaml": patch.encode()}) == [("reg/side", "3")]


def test_images_without_a_version_are_known_but_no_placeholders() -> None:
    pods = [b"web", b"reg/side", b"reg/side:3", b"reg/two:1", b"reg/two:2", b"$(IMAGE)", b"<yours>"]
    containers = b", ".join(b"{image: '%s'}" % each for each in pods)
    files = {"pods.yaml": b"kind: Pod\nspec: {containers: [%s]}\n" % containers}
    kustomization = {**files, "kustomization.yaml": b"resources: [pods.yaml]\n"}
    assert images_in(files) == [("reg/side", "3"), ("web", "")]
    assert images_of(kustomization) == images_in(files)


def test_images_of_a_remote_base_are_those_that_are_named() -> None:
    address = "https://example.org/base.git//deploy?ref=v1"
    images = "images: [{name: reg/web, newTag: '2'}, {name: reg/side, digest: 'sha256:1'}]"
    files = {"kustomization.yaml": f"resources: ['{address}']\n{images}\n".encode()}
    assert images_of(files) == [("reg/side", "@sha256:1"), ("reg/web", "2")]


def test_a_circle_ends() -> None:
    assert images_of({"a/kustomization.yaml": b"resources: [../a]"}, "a") == []


def test_everything_that_is_needed_comes_along() -> None:
    files = taken_in(place(TREE), ["overlays/prod"])
    assert sorted(files) == [
        "base/kustomization.yml",
        "base/web.yaml",
        "files/tls.conf",
        "overlays/prod/kustomization.yaml",
        "parts/tls/kustomization.yaml",
    ]
    assert moved_up(files, "overlays/prod") == ("overlays/prod", files)
    assert moved_up(taken_in(place(TREE), ["base"]), "base") == (
        "",
        {
            "kustomization.yml": TREE["base/kustomization.yml"],
            "web.yaml": DEPLOYMENT,
        },
    )


def test_nothing_outside_of_the_tree_is_looked_at() -> None:
    asked = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return (
            b"resources: [../../etc/passwd, /etc/passwd, https://x/y]" if path[0] == "k" else None
        )

    taken_in(FolderTree(lambda _: [], read), [""])
    assert not any(each.startswith(("/", "..")) for each in asked)
