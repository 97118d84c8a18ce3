"""Pinned images."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.check.objects.images import is_moving, unpinned_image


@pytest.mark.parametrize(
    "image", ["a/b:1", "r:5000/b:v2", "b:main-3f2a91c", "b:2024-stable", f"b@sha256:{'0' * 64}"]
)
def test_pinned_images_are_accepted(image: str) -> None:
    assert not unpinned_image(image)


def test_mutable_versions_are_recognized() -> None:
    assert is_moving("main") and is_moving("alpine-latest") and not is_moving("v1.2.3")
