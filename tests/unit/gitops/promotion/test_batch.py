"""Parsing of batch files of promotions."""

from __future__ import annotations

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.batch import read_batch
from k8s_ucp.gitops.promotion.decision import Intent
from k8s_ucp.gitops.promotion.order import Order

SHA = "sha256:" + "ab" * 32
DEFAULTS = Intent("", "", order=Order(sequence=9), force=True)


def test_items_override_the_defaults_from_the_command_line() -> None:
    text = f"""
- {{app: a, env: stage, tag: 1.10}}
- {{app: b, env: stage, digest: "{SHA}", sequence: 3, expect: 1.9}}
- {{app: c, env: prod, from: stage, requireEnv: stage}}
- app: d
  env: prod
  images: {{web: "2", worker: {SHA}}}
"""
    assert read_batch(text, "f", DEFAULTS) == [
        Intent("a", "stage", Pin("1.10"), order=Order(sequence=9), force=True),
        Intent("b", "stage", Pin(digest=SHA), order=Order(sequence=3), expect="1.9", force=True),
        Intent(
            "c", "prod", source="stage", order=Order(sequence=9), require_env="stage", force=True
        ),
        Intent(
            "d", "prod", images={"web": Pin("2"), "worker": Pin(digest=SHA)},
            order=Order(sequence=9), force=True,
        ),
    ]  # fmt: skip


def test_a_json_batch_is_read() -> None:
    text = '{"promotions": [{"app": "a", "env": "stage", "tag": "1"}]}'

    assert [intent.app for intent in read_batch(text, "f", DEFAULTS)] == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "documents"),
        ("[]", "contains no promotions"),
        ("a: 1", "contains no promotions"),
        ("- x", "item 1 is not a mapping"),
        (
            "- {app: a, env: s, tag: 1}\n- {app: b, envv: s, tag: 1}",
            "item 2 has an unknown key envv",
        ),
        ("- {app: a, tag: 1}", "has no env"),
        ("- {env: a, tag: 1}", "has no app"),
        ("- {app: a, env: s}", "exactly one of"),
        ("- {app: a, env: s, tag: 1, from: x}", "exactly one of"),
        ("- {app: a, env: s, tag: 'a b'}", "not a valid tag"),
        ("- {app: ../a, env: s, tag: 1}", "is not a valid name"),
        ("- {app: a, env: s, tag: 1, sequence: -1}", "not a valid number"),
        (f"- {{app: a, env: s, tag: 1, sequence: {'9' * 5000}}}", "not a valid number"),
        ("- {app: a, env: s, tag: 1}\n- {app: a, env: s, tag: 2}", "two promotions of a to s"),
        (
            "- {app: a, env: s, images: {x: 1}}\n- {app: a, env: s, images: {x: 2}}",
            "two promotions",
        ),
        ("[", "not valid YAML"),
    ],
)
def test_an_error_names_the_invalid_item(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_batch(text, "file", DEFAULTS)
