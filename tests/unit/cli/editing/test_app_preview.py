"""Permissions that an app needs beyond its own namespace, as stated in the question."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.app_preview import _AppObjects, _permissions, mutable_tag_advice
from k8s_ucp.topology import App


def config(namespace: str, kind: str = "ConfigMap") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}}


@pytest.mark.parametrize(
    ("brings", "words"),
    [
        (
            [config("prod"), config("staging")],
            "it writes to prod, staging, outside of its namespace web and it has no Namespace "
            "object for "
            "prod, staging",
        ),
        (
            [
                config("more"),
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}},
                config("web"),
            ],
            "it writes to more, outside of its namespace web",
        ),
        ([config("more")], "it writes to more, outside of its namespace web"),
    ],
)
def test_a_foreign_namespace_without_a_namespace_object_is_reported(
    brings: list[object], words: str
) -> None:
    app = App.model_validate({"name": "web", "path": "manifests/web"})
    assert _permissions(app, _AppObjects(brings)).words == words  # type: ignore[arg-type]


def test_what_to_do_beyond_the_flags_is_reported() -> None:
    app = App.model_validate({"name": "web", "path": "manifests/web"})
    lacks = _permissions(app, _AppObjects([config("prod"), config("staging")]))
    assert lacks.advice.startswith("and add the Namespace prod, staging to its manifests")
    assert "set `namespace: web` in its kustomizations" in lacks.advice
    moves = _permissions(app, _AppObjects([config("more")]))
    assert moves.advice == ""


def test_a_mutable_tag_is_reported_with_the_promotion_of_another_one() -> None:
    advice = mutable_tag_advice({"name": "web", "tag": "latest"}, ["stage", "prod"])
    assert "the tag latest is mutable" in advice
    assert advice.endswith("ucp promote web --env stage --tag VERSION")


@pytest.mark.parametrize("tag", ["1.27", "stable-2", f"latest@sha256:{'0' * 64}", None])
def test_other_tags_are_not_reported(tag: str | None) -> None:
    assert not mutable_tag_advice({"name": "web", "tag": tag}, ["stage"])
