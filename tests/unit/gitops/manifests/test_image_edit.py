# ruff: noqa: E501 (tables read better on one line)
"""The edit of an image's version changes one line, keeps the rest, and refuses unsafe edits."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.gitops.manifests.image_edit import (
    DIGEST,
    TAG,
    Pin,
    quoted,
    read_images,
    reads_as_text,
    set_pin,
)
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable

WHERE = "apps/echo/overlays/stage/kustomization.yaml"
SHA = "sha256:" + "ab" * 32
OTHER_SHA = "sha256:" + "cd" * 32


def load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def differing_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """(removed lines, added lines), including line ends."""
    lines = list(difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True)))
    return (
        [each[2:] for each in lines if each.startswith("- ")],
        [each[2:] for each in lines if each.startswith("+ ")],
    )


KEPT = {
    "comments and blank lines": (
        "# why\nimages:\n\n  # the one\n  - name: echo   # public\n    newTag: 1.0.0   # by CI\n\n# end\n",
        "    newTag: 1.0.0   # by CI\n",
        "    newTag: 2.0.0   # by CI\n",
    ),
    "single quotes": ("images:\n- name: echo\n  newTag: '1.0.0'\n", "'1.0.0'", "'2.0.0'"),
    "double quotes": ('images:\n- {name: echo}\n- name: x\n  newTag: "1.0.0"\n', None, None),
    "tag before name": ("images:\n- newTag: 1.0.0\n  name: echo\n", "1.0.0", "2.0.0"),
    "windows line ends": (
        "images:\r\n- name: echo\r\n  newTag: 1.0.0\r\n",
        "  newTag: 1.0.0\r\n",
        "  newTag: 2.0.0\r\n",
    ),
    "no final line end": ("images:\n- name: echo\n  newTag: 1.0.0", "newTag: 1.0.0", "newTag: 2.0.0"),
    "a byte order mark": ("\ufeffimages:\n- name: echo\n  newTag: 1.0.0\n", "1.0.0", "2.0.0"),
    "a flow mapping": ("images: [{name: echo, newTag: 1.0.0}]\n", "1.0.0", "2.0.0"),
    "json": ('{"images": [{"name": "echo", "newTag": "1.0.0"}]}\n', '"1.0.0"', '"2.0.0"'),
    "a document start and end": ("---\nimages:\n- name: echo\n  newTag: 1.0.0\n...\n", "1.0.0", "2.0.0"),
    "quoted keys": ('images:\n- "name": "echo"\n  "newTag": 1.0.0\n', "1.0.0", "2.0.0"),
    "spaces around the colon": ("images:\n- name:   echo\n  newTag:    1.0.0\n", "1.0.0", "2.0.0"),
    "an own anchor": ("images:\n- name: echo\n  newTag: &v 1.0.0\n", "&v 1.0.0", "&v 2.0.0"),
    "an own tag": ("images:\n- name: echo\n  newTag: !!str 1.0.0\n", "1.0.0", "2.0.0"),
    "a name that is the tag": (
        "images:\n- name: 1.0.0\n  newTag: 1.0.0\n- name: echo\n  newTag: 1.0.0\n",
        None,
        None,
    ),
    "wide characters before it": ("# ünï 日本 🎉\nimages:\n- name: echo\n  newTag: 1.0.0\n", "1.0.0", "2.0.0"),
    "an explicit key": ("images:\n- name: echo\n  ? newTag\n  : 1.0.0\n", ": 1.0.0", ": 2.0.0"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new"), KEPT.values(), ids=KEPT.keys())
def test_only_one_line_changes_and_the_rest_is_kept(
    text: str, old: str | None, new: str | None
) -> None:
    changed = set_pin(text, "echo", Pin("2.0.0"), WHERE)

    if old is not None and new is not None:
        assert text.replace(old, new) == changed
    went, came = differing_lines(text, changed)
    assert len(went) <= 1
    assert len(came) == 1
    assert {each.name: each.pin for each in read_images(changed, WHERE)}["echo"] == Pin("2.0.0")


ADDED = {
    "behind the name": (
        "images:\n- name: echo # x\n- name: other\n",
        "images:\n- name: echo # x\n  newTag: v2\n- name: other\n",
    ),
    "behind the new name": (
        "images:\n  - name: echo\n    newName: ghcr.io/echo\nresources: []\n",
        "images:\n  - name: echo\n    newName: ghcr.io/echo\n    newTag: v2\nresources: []\n",
    ),
    "with the file's line ends": (
        "images:\r\n- name: echo\r\n",
        "images:\r\n- name: echo\r\n  newTag: v2\r\n",
    ),
    "at the end of a file without one": ("images:\n- name: echo", "images:\n- name: echo\n  newTag: v2"),
    "in a flow mapping": ("images: [{name: echo}]\n", "images: [{name: echo, newTag: v2}]\n"),
    "in json": ('{"images": [{"name": "echo"}]}', '{"images": [{"name": "echo", "newTag": "v2"}]}'),
    "where it is null": ("images:\n- name: echo\n  newTag:\n", "images:\n- name: echo\n  newTag: v2\n"),
    "where it is null with a comment": (
        "images:\n- name: echo\n  newTag: # later\n",
        "images:\n- name: echo\n  newTag: v2 # later\n",
    ),
    "where it is empty": ('images:\n- name: echo\n  newTag: ""\n', 'images:\n- name: echo\n  newTag: "v2"\n'),
    "where it says null": ("images:\n- name: echo\n  newTag: null\n", "images:\n- name: echo\n  newTag: v2\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ADDED.values(), ids=ADDED.keys())
def test_a_missing_tag_is_added(text: str, expected: str) -> None:
    assert set_pin(text, "echo", Pin("v2"), WHERE) == expected


TURNED = {
    "tag to digest": (
        "images:\n- name: echo\n  newTag: 1.0.0 # x\n",
        Pin(digest=SHA),
        f"images:\n- name: echo\n  digest: {SHA} # x\n",
    ),
    "digest to tag": (
        f"images:\n- digest: {SHA}\n  name: echo\n",
        Pin("v2"),
        "images:\n- newTag: v2\n  name: echo\n",
    ),
    "digest to digest": (
        f"images:\n- name: echo\n  digest: '{SHA}'\n",
        Pin(digest=OTHER_SHA),
        f"images:\n- name: echo\n  digest: '{OTHER_SHA}'\n",
    ),
    "both to tag": (
        f"images:\n- name: echo\n  digest: {SHA}\n  newTag: 1.0.0\n",
        Pin("v2"),
        "images:\n- name: echo\n  newTag: v2\n",
    ),
    "both to digest, tag last without line end": (
        f"images:\n- name: echo\n  digest: {SHA}\n  newTag: 1.0.0",
        Pin(digest=OTHER_SHA),
        f"images:\n- name: echo\n  digest: {OTHER_SHA}\n",
    ),
    "both to tag where the digest opens the item": (
        f"images:\n- digest: {SHA}\n  name: echo\n  newTag: 1.0.0\n",
        Pin("v2"),
        'images:\n- digest: ""\n  name: echo\n  newTag: v2\n',
    ),
    "both to tag in a flow mapping": (
        f"images: [{{name: echo, newTag: 1.0.0, digest: {SHA}}}]\n",
        Pin("v2"),
        'images: [{name: echo, newTag: v2, digest: ""}]\n',
    ),
    "tag to both": (
        "images:\n- name: echo\n  newTag: 1.0.0\n",
        Pin("v2", SHA),
        f"images:\n- name: echo\n  digest: {SHA}\n  newTag: v2\n",
    ),
}


@pytest.mark.parametrize(("text", "pin", "expected"), TURNED.values(), ids=TURNED.keys())
def test_tags_and_digests_replace_each_other(text: str, pin: Pin, expected: str) -> None:
    assert set_pin(text, "echo", pin, WHERE) == expected


def test_the_same_pin_changes_nothing() -> None:
    text = "images:\n- name: echo\n  newTag: '1.0'\n"

    assert set_pin(text, "echo", Pin("1.0"), WHERE) == text


def test_an_alias_is_replaced_by_a_value() -> None:
    text = "images:\n- name: other\n  newTag: &v 1.0.0\n- name: echo\n  newTag: *v\n"

    changed = set_pin(text, "echo", Pin("2.0.0"), WHERE)

    assert changed == text.replace("*v", "2.0.0")


def test_an_image_name_from_a_merge_key_is_recognized() -> None:
    text = "x: &x {name: echo, newName: e}\nimages:\n- <<: *x\n  newTag: 1.0.0\n"

    assert set_pin(text, "echo", Pin("2.0.0"), WHERE) == text.replace("1.0.0", "2.0.0")


REFUSED = {
    "no images": ("resources: []\n", "has no images"),
    "empty images": ("images: []\n", "has no images"),
    "null images": ("images:\n", "has no images"),
    "images that are no list": ("images: {echo: 1}\n", "has no images"),
    "a list at the root": ("- images\n", "has no images"),
    "an empty file": ("", "0 YAML documents"),
    "two documents": ("images:\n- name: echo\n---\nimages: []\n", "2 YAML documents"),
    "broken YAML": ("images: [\n", "not valid YAML"),
    "an unknown anchor": ("images:\n- name: echo\n  newTag: *v\n", "not valid YAML|before its definition"),
    "another image": ("images:\n- name: other\n", "not under images"),
    "the image twice": ("images:\n- name: echo\n- name: echo\n", "2 times"),
    "the key twice": ("images:\n- name: echo\n  newTag: a\n  newTag: b\n", "duplicate key newTag"),
    "images twice": ("images:\n- name: echo\nimages:\n- name: echo\n", "duplicate key images"),
    "an anchor that others use": (
        "images:\n- name: echo\n  newTag: &v 1.0.0\n- name: other\n  newTag: *v\n",
        "also used elsewhere",
    ),
    "an item that is merged elsewhere": (
        "images:\n- &e\n  name: echo\n  newTag: 1.0.0\n- <<: *e\n  name: other\n",
        "also used elsewhere",
    ),
    "an item that is an alias": ("x: &x {name: echo}\nimages:\n- *x\n", "is a YAML alias"),
    "a merged digest": ("x: &x {digest: d}\nimages:\n- <<: *x\n  name: echo\n  newTag: a\n", "can't be edited"),
    "a merged name without tag": ("x: &x {name: echo}\nimages:\n- <<: *x\n", "comes from a YAML anchor"),
    "a block scalar": ("images:\n- name: echo\n  newTag: |-\n    1.0.0\n", "several lines"),
    "two lines": ('images:\n- name: echo\n  newTag: "1.0\n    .0"\n', "several lines"),
    "a tag that is a list": ("images:\n- name: echo\n  newTag: [1]\n", "not a string"),
    "a foreign YAML tag": ("images:\n- name: echo\n  newTag: !!int 1\n", "YAML tag"),
    "a name with a line end": ('images:\n- name: "echo\\nUcp-App: x"\n', "with the invalid name"),
    "an item without name": ("images:\n- newTag: x\n", "with the invalid name"),
    "an item that is text": ("images:\n- echo\n", "not a mapping"),
    "deep nesting": ("images:\n- name: echo\n  x: " + "[" * 70 + "]" * 70 + "\n", "levels deep"),
    "a huge file": ("images:\n- name: echo\n" + "# x\n" * 300_000, "characters"),
    "control characters": ("images:\n- name: echo\n  newTag: a\x00b\n", "not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_cannot_be_edited_safely_are_refused(text: str, said: str) -> None:
    with pytest.raises(NotEditable, match=said):
        set_pin(text, "echo", Pin("2.0.0"), WHERE)


@settings(deadline=None, derandomize=True)
@given(st.from_regex(TAG, fullmatch=True))
def test_a_quoted_tag_is_a_string_in_yaml_1_1_and_1_2(tag: str) -> None:
    for version in ("1.1", "1.2"):
        for style in ("", "'", '"'):
            yaml = YAML(typ="safe", pure=True)
            yaml.version = version
            assert yaml.load(f"tag: {quoted(tag, style)}\n") == {"tag": tag}


@pytest.mark.parametrize(
    "tag",
    ["1", "1.0", "1e3", "12345e7", "0x1F", "0o17", "0b1", "1_000", "2024-01-02", "yes", "No", "on",
     "null", "true", "y", "1.", "_1", "007", "1e", "0x1p-2"],
)  # fmt: skip
def test_tags_that_yaml_may_read_as_another_type_are_quoted(tag: str) -> None:
    assert not reads_as_text(tag)


@pytest.mark.parametrize(
    "tag", ["0.9.2", "v1", "main", "1.2-rc1", "3fa9c1d", "sha-1.2", "20240102a"]
)
def test_ordinary_tags_are_not_quoted(tag: str) -> None:
    assert reads_as_text(tag)


# Model-based test: generated kustomizations are edited, and their parsed contents compared.

names = st.sampled_from(["echo", "ghcr.io/a/b", "registry:5000/x", "quay.io/c.d/e-f"])
tags = st.from_regex(TAG, fullmatch=True).filter(lambda tag: len(tag) < 30)
digests = st.from_regex(DIGEST, fullmatch=True)
comments = st.sampled_from(["", " # why", "   # newTag: 9", " #"])
styles = st.sampled_from(["", "'", '"'])


@st.composite
def entries(draw: st.DrawFn, name: str, indent: str) -> str:
    """One image, in block style or flow style."""
    facts = {"name": quoted(name, draw(styles))}
    if draw(st.booleans()):
        facts["newName"] = quoted("example.org/x", draw(styles))
    kind = draw(st.sampled_from(["tag", "digest", "both", "none"]))
    if kind in ("tag", "both"):
        facts["newTag"] = quoted(draw(tags), draw(styles))
    if kind in ("digest", "both"):
        facts["digest"] = quoted(draw(digests), draw(styles))
    order = draw(st.permutations(list(facts)))
    if draw(st.booleans()):
        inside = ", ".join(f"{key}: {facts[key]}" for key in order)
        return f"{indent}- {{{inside}}}{draw(comments)}\n"
    lines = [f"{key}: {facts[key]}{draw(comments)}\n" for key in order]
    return indent + "- " + f"{indent}  ".join(lines)


@st.composite
def kustomizations(draw: st.DrawFn) -> tuple[str, list[str]]:
    """(text, image names)."""
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    indent = draw(st.sampled_from(["", "  ", "    "]))
    body = "images:" + draw(comments) + "\n"
    for name in chosen:
        body += draw(st.sampled_from(["", "\n", f"{indent}# note\n"])) + draw(entries(name, indent))
    before = draw(st.sampled_from(["", "---\n", "resources: [../../base]\n", "# head\n\n"]))
    after = draw(st.sampled_from(["", "namePrefix: x-\n", "replicas:\n- {name: a, count: 2}\n"]))
    text = before + body + after
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text, chosen


@settings(deadline=None, derandomize=True)
@given(kustomizations(), st.data())
def test_edits_agree_with_a_model(made: tuple[str, list[str]], data: st.DataObject) -> None:
    text, chosen = made
    name = data.draw(st.sampled_from(chosen))
    pin = data.draw(st.one_of(tags.map(Pin), digests.map(lambda each: Pin(digest=each))))
    before = {each.name: each.pin for each in read_images(text, WHERE)}
    assume(before[name] != pin)

    changed = set_pin(text, name, pin, WHERE)

    expected, found = load(text.lstrip("\ufeff")), load(changed.lstrip("\ufeff"))
    for item in (*expected["images"], *found["images"]):
        if item["name"] == name:
            for key in ("newTag", "digest"):
                item.pop(key, None)
    assert found == expected, "something else has changed"
    assert {each.name: each.pin for each in read_images(changed, WHERE)} == {**before, name: pin}
    went, came = differing_lines(text, changed)
    both = before[name].tag and before[name].digest
    assert len(came) <= (2 if both or not text.endswith("\n") else 1)
    assert len(went) <= (2 if both else 1)
    assert changed.count("\r\n") == changed.count("\n") or "\r" not in text
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
