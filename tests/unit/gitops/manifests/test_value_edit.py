"""The edit of a value changes nothing else, refuses unsafe edits, and can be undone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.gitops.manifests.value_edit import parse_path, path_text, set_value, text_at
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_tree

EDITED = {
    "a value and its comment": (
        "# web\nimage:\n  repository: web  # ours\n  tag: 1.0  # by CI\n\nreplicas: 2\n",
        "# web\nimage:\n  repository: web  # ours\n  tag: 2.0.0  # by CI\n\nreplicas: 2\n",
    ),
    "quotes": ("image: {tag: '1.0'}\n", "image: {tag: '2.0.0'}\n"),
    "windows line ends": ("image:\r\n  tag: 1\r\n", "image:\r\n  tag: 2.0.0\r\n"),
    "no value": ("image:\n  tag:\nx: 1\n", "image:\n  tag: 2.0.0\nx: 1\n"),
    "a missing key": (
        "image:\n  repository: web # ours\n\n# how many\nreplicas: 2\n",
        "image:\n  repository: web # ours\n  tag: 2.0.0\n\n# how many\nreplicas: 2\n",
    ),
    "a missing mapping": ("replicas: 2\n", "replicas: 2\nimage:\n  tag: 2.0.0\n"),
    "behind a block of text": (
        "note: |\n  one\n  two\n",
        "note: |\n  one\n  two\nimage:\n  tag: 2.0.0\n",
    ),
    "behind nested values": (
        "a:\n  b:\n    - c: 1",
        "a:\n  b:\n    - c: 1\nimage:\n  tag: 2.0.0",
    ),
    "an empty mapping": ("# Values.\n{}\n", "# Values.\nimage:\n  tag: 2.0.0\n"),
    "an empty file": ("", "image:\n  tag: 2.0.0\n"),
    "only a comment": ("# Values.", "# Values.\nimage:\n  tag: 2.0.0\n"),
    "json": ('{"image": {"tag": "1"}}', '{"image": {"tag": "2.0.0"}}'),
    "json without it": ('{"image": {"x": "1"}}', '{"image": {"x": "1", tag: 2.0.0}}'),
    "an empty flow mapping": ("image: {}\n", "image: {tag: 2.0.0}\n"),
}


@pytest.mark.parametrize("name", EDITED)
def test_only_the_value_changes(name: str) -> None:
    old, new = EDITED[name]
    assert set_value(old, ("image", "tag"), "2.0.0", "values.yaml") == new


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image: &a\n  tag: 1\nother: *a\n", "anchor &a"),
        ("x: &a {tag: 1}\nimage: *a\n", r"alias \*a"),
        ("image:\n  tag: 1\n  tag: 2\n", "duplicate key tag"),
        ("image: web:1\n", "has no tag"),
        ("image:\n  tag: |\n    1\n", "several lines"),
        ("image:\n  tag: !x 1\n", "YAML tag"),
        ("image:\n  tag: [1]\n", "not a string"),
        ("image: [\n", "not valid YAML"),
    ],
)
def test_unsafe_edits_are_refused(text: str, words: str) -> None:
    with pytest.raises(NotEditable, match=words):
        set_value(text, ("image", "tag"), "2.0.0", "values.yaml")


def test_one_of_several_documents_is_edited() -> None:
    text = "a: {b: 1}\n---\n# two\na:\n  b: 1\n"
    assert set_value(text, ("a", "b"), "2.x", "x.yaml", 1) == text.replace("  b: 1", "  b: 2.x")


def test_an_item_of_a_list_is_edited() -> None:
    text = "tlas:\n- {name: tag, value: one}\n- name: x\n  value: two\n"
    path = parse_path("tlas.1.value")
    assert set_value(text, path, "three", "x.yaml") == text.replace("two", "three")


def test_paths_are_parsed_and_formatted() -> None:
    assert parse_path(r"a\.b.c.0.d") == ("a.b", "c", 0, "d")
    assert path_text(("a.b", "c", 0)) == r"a\.b.c.0"


keys = st.text("abcxyz", min_size=1, max_size=3)
values: Any = st.recursive(
    st.text("ab01.:# -'\"", max_size=6) | st.none() | st.integers(0, 9),
    lambda inside: st.dictionaries(keys, inside, max_size=3) | st.lists(inside, max_size=2),
    max_leaves=8,
)


@given(st.dictionaries(keys, values, max_size=4), st.lists(keys, min_size=1, max_size=3), st.data())
def test_setting_a_value_and_restoring_it_yields_the_same_text(
    content: dict[str, Any], way: list[str], data: st.DataObject
) -> None:
    """The set value is read back, nothing else changes, and the old value restores the text."""
    import io

    flow = data.draw(st.booleans())
    stream = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = flow
    yaml.dump(content, stream)
    text, path = stream.getvalue(), tuple(way)
    try:
        first = set_value(text, path, "1.0.0", "values.yaml")
    except NotEditable:
        return
    assert text_at(read_tree(first, "values.yaml"), path) == "1.0.0"
    inside = content
    for part in way[:-1]:
        if not isinstance(inside.get(part), dict):
            inside[part] = {}
        inside = inside[part]
    inside[way[-1]] = "1.0.0"
    assert YAML(typ="safe", pure=True).load(first) == content
    second = set_value(first, path, "sha256:0", "values.yaml")
    assert set_value(second, path, "1.0.0", "values.yaml") == first
