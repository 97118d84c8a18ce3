"""Applications that a push touches."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.refresh import EVERYTHING, is_touched, same_repository

URL = "file:///work/a%20b/apps.git"
PATHS = "argocd.argoproj.io/manifest-generate-paths"


def application(path: str, url: str = URL, paths: str | None = ".") -> dict[str, Any]:
    annotations = {} if paths is None else {PATHS: paths}
    source = {"repoURL": url, "path": path}
    return {"metadata": {"name": "x", "annotations": annotations}, "spec": {"source": source}}


@pytest.mark.parametrize(
    ("path", "paths", "changed", "touched"),
    [
        ("apps/echo/overlays/stage", ".", "apps/echo/overlays/stage/kustomization.yaml", True),
        ("apps/echo/overlays/stage", ".", "apps/echo/overlays/prod/kustomization.yaml", False),
        ("apps/echo/overlays/stage", ".", "apps/echo/overlays/stage2/x.yaml", False),
        ("apps/echo/overlays/stage", ".;../../base", "apps/echo/base/service.yaml", True),
        ("apps/echo/overlays/stage", ".;../../base", "apps/quote/base/service.yaml", False),
        ("bootstrap/embedded", ".;/projects", "projects/default.yaml", True),
        ("bootstrap/embedded", "", "bootstrap/embedded/root.yaml", True),
        (".", ".", "anything", True),
        ("clusters", ".", EVERYTHING, True),
        ("clusters", None, "apps/x", True),
    ],
)
def test_an_application_is_touched_according_to_its_manifest_generate_paths(
    path: str, paths: str | None, changed: str, touched: bool
) -> None:
    assert is_touched(application(path, paths=paths), URL, frozenset({changed})) is touched


def test_another_repository_is_not_touched() -> None:
    other = application("clusters", url="file:///work/core.git")
    assert not is_touched(other, URL, frozenset({EVERYTHING}))


def test_an_application_is_touched_through_one_of_several_sources() -> None:
    item = application("clusters")
    item["spec"] = {"sources": [{"repoURL": "x", "chart": "y"}, item["spec"]["source"]]}
    assert is_touched(item, URL, frozenset({"clusters/x"}))
    assert not is_touched({"spec": {}}, URL, frozenset({EVERYTHING}))


def test_equivalent_urls_are_the_same_repository() -> None:
    assert same_repository("https://x/y.git", "https://x/y/")
    assert same_repository("https://x/y", "https://x/y.git/")
    assert not same_repository("https://x/y", "https://x/z")
