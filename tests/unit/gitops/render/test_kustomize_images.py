"""Images that kustomizations produce from bases, components, patches and `images`."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.manifests.images_and_ports import images_in
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.gitops.render import kustomize_images
from k8s_ucp.gitops.render.kustomize_images import _matches, images_of

DEPLOYMENT = (
    b"kind: Deployment\nspec: {containers: [{image: 'reg/web:1'}, {image: 'reg/side:2'}]}\n"
)
TREE = {
    "base/kustomization.yml": b"resources: [web.yaml]\nimages: [{name: reg/side, newTag: '3'}]\n",
    "base/web.yaml": DEPLOYMENT,
    "overlays/prod/kustomization.yaml": (
        b"resources: [../../base]\nimages: [{name: reg/web, newName: far/web, newTag: '5'}]\n"
    ),
    "overlays/pinned/Kustomization": b"resources: [../../base]\n"
    b"images: [{name: reg/web, digest: 'sha256:1'}]\n",
}
NAMED = {
    "base/kustomization.yaml": b"resources: [all.yaml]\n",
    "base/all.yaml": b"""
kind: List
items:
  - kind: Deployment
    metadata: {name: web}
    spec:
      template:
        spec:
          initContainers: [{name: setup, image: reg/setup:1}]
          containers: [{name: web, image: reg/web:1}, {name: side, image: reg/side:1}]
---
kind: Deployment
metadata: {name: worker}
spec: {template: {spec: {containers: [{name: web, image: reg/worker:1}]}}}
""",
}


def test_images_are_those_of_the_build_output() -> None:
    assert images_of(TREE, "base") == [("reg/side", "3"), ("reg/web", "1")]
    assert images_of(TREE, "overlays/prod") == [("far/web", "5"), ("reg/side", "3")]
    assert images_of(TREE, "overlays/pinned") == [("reg/side", "3"), ("reg/web", "@sha256:1")]


def test_a_file_that_overlays_have_in_common_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[bytes] = []

    def count(content: bytes, path: str) -> list[Any]:
        parsed.append(content)
        return documents(content, path)

    monkeypatch.setattr(kustomize_images, "documents", count)
    files = {**TREE, "base/web.yaml": DEPLOYMENT.replace(b"web:1", b"web:once")}
    for folder in ("overlays/prod", "overlays/pinned", "base"):
        images_of(files, folder)

    assert parsed.count(files["base/web.yaml"]) == 1


def test_a_component_changes_the_images_of_its_parent() -> None:
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
def test_an_image_that_a_patch_without_a_known_target_sets_is_not_listed(patch: str) -> None:
    inline = f"resources: [base]\npatches:\n  - patch: |-\n      {patch}\n"
    files = {**TREE, "kustomization.yaml": inline.encode()}
    assert images_of(files) == [("reg/side", "3")]
    files |= {"kustomization.yaml": b"resources: [base]\npatches: [{path: p.yaml}]\n"}
    assert images_of({**files, "p.yaml": patch.encode()}) == [("reg/side", "3")]


def test_images_without_a_version_are_listed_and_placeholders_are_not() -> None:
    pods = [b"web", b"reg/side", b"reg/side:3", b"reg/two:1", b"reg/two:2", b"$(IMAGE)", b"<yours>"]
    containers = b", ".join(b"{image: '%s'}" % each for each in pods)
    files = {"pods.yaml": b"kind: Pod\nspec: {containers: [%s]}\n" % containers}
    kustomization = {**files, "kustomization.yaml": b"resources: [pods.yaml]\n"}
    assert images_in(files) == [("reg/side", "3"), ("web", "")]
    assert images_of(kustomization) == images_in(files)


def test_images_of_a_remote_base_are_those_listed_in_the_kustomization() -> None:
    address = "https://example.org/base.git//deploy?ref=v1"
    images = "images: [{name: reg/web, newTag: '2'}, {name: reg/side, digest: 'sha256:1'}]"
    files = {"kustomization.yaml": f"resources: ['{address}']\n{images}\n".encode()}
    assert images_of(files) == [("reg/side", "@sha256:1"), ("reg/web", "2")]


def test_a_cycle_of_kustomizations_ends() -> None:
    assert images_of({"a/kustomization.yaml": b"resources: [../a]"}, "a") == []


def _patched(patch: str) -> list[tuple[str, str]]:
    content = f"resources: [../base]\npatches: [{patch}]\n"
    return images_of({**NAMED, "prod/kustomization.yaml": content.encode()}, "prod")


AS_BEFORE = [("reg/setup", "1"), ("reg/side", "1"), ("reg/web", "1"), ("reg/worker", "1")]
"""The images of NAMED."""


@pytest.mark.parametrize(
    "patch",
    [
        "{path: version.yml}",
        "{path: image.json, target: {kind: Deployment, name: web}}",
        "{path: image.json, target: {group: apps, version: v1, kind: Deployment, name: 'we.'}}",
    ],
)
def test_a_patch_replaces_the_version_of_its_container(patch: str) -> None:
    files = {
        **NAMED,
        "prod/kustomization.yaml": f"resources: [../base]\npatches: [{patch}]\n".encode(),
        "prod/version.yml": b"""
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: reg/web:2.0}]}}}
""",
        "prod/image.json": b"""[
{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "reg/web:2.0"}
]""",
    }
    expected = [("reg/web", "2.0") if name == "reg/web" else (name, v) for name, v in AS_BEFORE]
    assert images_of(files, "prod") == expected
    # The `images` of an outer kustomization are applied last.
    files["top/kustomization.yaml"] = (
        b"resources: [../prod]\nimages: [{name: reg/web, newTag: '3'}]\n"
    )
    assert ("reg/web", "3") in images_of(files, "top")


def test_an_image_that_an_ambiguous_patch_sets_is_not_listed() -> None:
    operation = "{op: replace, path: /spec/template/spec/containers/0/image, value: reg/web:2}"
    left = [each for each in AS_BEFORE if each[0] != "reg/web"]
    for target in ("{labelSelector: app=web}", "{name: (}", "{kind: StatefulSet}", "{}"):
        assert _patched(f"{{patch: '[{operation}]', target: {target}}}") == left
    # A patch can add a container.
    more = "{kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [%s]}}}}"
    added = [*AS_BEFORE, ("reg/proxy", "4")]
    assert _patched(f"{{patch: '{more % '{name: proxy, image: reg/proxy:4}'}'}}") == sorted(added)
    assert _patched(f"{{patch: '{more % '{image: reg/web:2}'}'}}") == left


def test_a_pattern_of_a_patch_that_takes_years_is_not_compared() -> None:
    assert not _matches("(a+)+", "a" * 40 + "-")
    assert not _matches("a*a*a*a*a*a*a*a*a*a*b", "a" * 200)
    assert _matches("web-.*", "web-api")
    assert _matches("web-(api|page)", "web-page")


@pytest.mark.parametrize("pattern", ["a{99999999999}", f"a{{{'9' * 5000}}}", "(" * 2000])
def test_a_pattern_that_python_cannot_read_selects_nothing(pattern: str) -> None:
    assert not _matches(pattern, "web")


@pytest.mark.parametrize("key", ["resources", "components"])
def test_kustomizations_listed_twice_count_once(key: str) -> None:
    """Forty of them, of which each lists the next twice, would be read a trillion times."""
    files = {
        f"{number}/kustomization.yaml": f"{key}: [../{number + 1}, ../{number + 1}]\n".encode()
        for number in range(40)
    }
    files |= {"40/kustomization.yaml": b"resources: [web.yaml]\n", "40/web.yaml": DEPLOYMENT}
    assert images_of(files, "0") == [("reg/side", "2"), ("reg/web", "1")]


def test_kustomizations_in_an_endless_line_are_not_followed() -> None:
    files = {
        f"{number}/kustomization.yaml": f"resources: [../{number + 1}]\n".encode()
        for number in range(2000)
    }
    images = b"images: [{name: reg/web, newTag: '5'}]\n"
    files["0/kustomization.yaml"] += images
    assert images_of(files, "0") == [("reg/web", "5")]


def test_containers_that_are_no_list_have_no_images() -> None:
    pods = b"kind: Pod\nspec: {containers: 5}\n---\nkind: Pod\nspec: {containers: {image: web}}\n"
    assert images_in({"pods.yaml": pods}) == []
