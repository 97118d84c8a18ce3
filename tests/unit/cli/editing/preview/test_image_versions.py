"""Images of an app whose versions a promotion can't change."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.preview.image_versions import (
    images_outside_containers,
    mutable_tag_advice,
)
from k8s_ucp.gitops.render.inputs import Rendered


def test_a_mutable_tag_is_reported_with_the_promotion_of_another_one() -> None:
    advice = mutable_tag_advice({"name": "web", "tag": "latest"}, ["stage", "prod"])
    assert "the tag latest is mutable" in advice
    assert advice.endswith("ucp promote web --env stage --tag VERSION")


@pytest.mark.parametrize("tag", ["1.27", "stable-2", f"latest@sha256:{'0' * 64}", None])
def test_other_tags_are_not_reported(tag: str | None) -> None:
    assert not mutable_tag_advice({"name": "web", "tag": tag}, ["stage"])


def test_images_in_fields_of_custom_resources_are_reported_as_not_promoted() -> None:
    overlay = "apps/web/overlays/stage/kustomization.yaml"
    rendered = Rendered(core={}, apps={overlay: b"images: [{name: listed, newTag: '1'}]\n"})
    kafka = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "Kafka",
        "metadata": {"name": "events"},
        "spec": {
            "kafka": {"image": "example.org/kafka:3.9"},
            "zookeeper": {"image": "listed:1"},
            "exporter": {"image": "{{ no image }}"},
            "template": {"containers": [{"image": "web:1"}]},
        },
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"image": "a/b:1"}}
    [said] = images_outside_containers(rendered, "web", "stage", [kafka, pod])
    assert said.startswith(
        "`ucp promote` can't change example.org/kafka:3.9 of Kafka/events: `images` of a"
    )
    assert not list(images_outside_containers(rendered, "web", "stage", [pod]))
    assert not list(images_outside_containers(rendered, "chart", "stage", [kafka]))
