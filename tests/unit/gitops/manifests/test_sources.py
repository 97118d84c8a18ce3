"""The remote sources of kustomizations that are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.sources import find_outside, find_refused, refused


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("file:///x?ref=--upload-pack=a", "the revision in"),
        ("https://g/a/b?timeout=5&version=%2d-upload-pack=a", "the revision in"),
        ("https://g/a/b?ref=+-u", None),
        ("ssh://-oProxyCommand=a/b/c?ref=v1", "the host in"),
        ("git@-oProxyCommand=a:b/c", "the host in"),
        ("git::ssh://-o/b/c", "the host in"),
        ("ext::sh -c a?ref=v1", "a program as its transport"),
        ("git::https://g/a/b?ref=v1", None),
        ("https://g/a-b//c-d?ref=v1-2", None),
        ("../../base", None),
        ("-odd-name.yaml", None),
        ("kind: A\nurl: ext::x@-y", None),
    ],
)
def test_remote_bases_that_git_would_read_as_options_are_refused(
    entry: str, words: str | None
) -> None:
    found = refused(entry)
    assert (found is None) if words is None else (found is not None and words in found)


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """In a repository with a base; `private` is beside the repository."""
    found = tmp_path / "one/apps/web/overlays/stage"
    for folder in (found, tmp_path / "one/apps/web/base", tmp_path / "private"):
        folder.mkdir(parents=True)
    return found


OUTSIDE = "../../../../../private"


@pytest.mark.parametrize(
    "text",
    [
        f"resources: [{OUTSIDE}]",
        f"resources: [./x/../{OUTSIDE}/.]",
        f"Components: ['{OUTSIDE}']",
        f"resources: [{OUTSIDE}]\nresources: []",
        f"x: &x {OUTSIDE}\nresources: [*x]",
        "resources: ['../../../../..']",
        'resources: ["\\x2e\\x2e/../../../../private"]',
        "resources: [!!binary Li4vLi4vLi4vLi4vLi4vcHJpdmF0ZQ==]",
        "resources: [../../base]",
        "resources: [link]",
    ],
)
def test_a_folder_outside_of_the_repository_is_found(overlay: Path, text: str) -> None:
    root = overlay.parents[3]
    (root / "apps/web/base/Kustomization").write_text("resources: [../../../../private]")
    (overlay / "link").symlink_to(root.parent / "private")
    (overlay / "kustomization.yaml").write_text(text)
    assert find_outside(overlay, root)


@pytest.mark.parametrize(
    "text", ["resources: [../../base, x.yaml, ../no]", "a: [/, /etc]", "", "-"]
)
def test_folders_of_the_repository_are_allowed(overlay: Path, text: str) -> None:
    (overlay / "kustomization.yaml").write_text(text)
    assert find_outside(overlay, overlay.parents[3]) is None


@pytest.mark.parametrize("text", ["resources: [", "resources:\n- \t../../base\n"])
def test_a_kustomization_that_can_not_be_read_is_refused(overlay: Path, text: str) -> None:
    (overlay / "kustomization.yaml").write_text(text)
    with pytest.raises(UsageError):
        find_outside(overlay, overlay.parents[3])


def test_a_patch_on_one_line_is_not_taken_for_the_name_of_a_file(overlay: Path) -> None:
    """It may be longer than any name of a file."""
    patch = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{a: {'b' * 300}}}}}"
    (overlay / "kustomization.yaml").write_text(f"patchesStrategicMerge: ['{patch}']\n")
    assert not list(find_refused(overlay))
