"""Images of an app whose versions a promotion can't change."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.preview.image_versions import mutable_tag_advice


def test_a_mutable_tag_is_reported_with_the_promotion_of_another_one() -> None:
    advice = mutable_tag_advice({"name": "web", "tag": "latest"}, ["stage", "prod"])
    assert "the tag latest is mutable" in advice
    assert advice.endswith("ucp promote web --env stage --tag VERSION")


@pytest.mark.parametrize("tag", ["1.27", "stable-2", f"latest@sha256:{'0' * 64}", None])
def test_other_tags_are_not_reported(tag: str | None) -> None:
    assert not mutable_tag_advice({"name": "web", "tag": tag}, ["stage"])
