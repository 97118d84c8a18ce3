"""YAML is accepted where kubectl and kustomize accept it."""

from __future__ import annotations

import time

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all, first_map, multiplied, nodes
from k8s_ucp.topology.yaml_reader import BadYaml, read


@pytest.mark.parametrize(
    "content",
    [
        b"kind: A\t# said\nname:\tweb\n",
        b"kind: A\t\nname: web \t\n",
        b"kind: A\r\nname: web\r\n",
        b"\xef\xbb\xbfkind: A\nname: web\n",
        "kind: A\nname: web\n".encode("utf-16"),
        b"kind: A\n\t\nname: web\n",
        b"x: &a web\n---\nkind: A\nname: web\n",
    ],
    ids=["tabs", "tabs-at-the-end", "crlf", "bom", "utf-16", "blank-line", "anchor"],
)
def test_unusual_but_valid_yaml_is_accepted(content: bytes) -> None:
    found = documents(content, "a.yaml")[-1]
    assert (found["kind"], found["name"]) == ("A", "web")


@pytest.mark.parametrize("start", ["a: b", "", "a:", "- "])
def test_a_long_line_of_tabs_does_not_take_minutes(start: str) -> None:
    with pytest.raises(UsageError):
        documents(f"{start}{100_000 * chr(9)}x\n  c: [\n".encode(), "a.yaml")


def test_anchors_and_a_plain_equals_sign_are_read() -> None:
    [found] = documents(b"a: &x {n: 1}\nb: {<<: *x}\nenum: [=, '>']\n", "a.yaml")
    assert found["b"] == {"n": 1}
    assert found["enum"] == ["=", ">"]


def test_an_anchor_whose_name_is_used_again_is_read_as_by_kubectl() -> None:
    text = "first: &port 80\na: *port\nsecond: &port {n: 443}\nb: *port\n"
    expected = {"first": 80, "a": 80, "second": {"n": 443}, "b": {"n": 443}}

    assert documents(text.encode(), "a.yaml") == [expected]
    assert yaml_io.load(text) == expected
    [node] = nodes(text)
    assert [key.start_mark.line for key, _ in node.value] == [0, 1, 2, 3]


def test_an_alias_without_an_anchor_is_refused_beside_anchors_that_are_used_again() -> None:
    with pytest.raises(UsageError, match=r"found undefined alias.*line 3"):
        documents(b"a: &k 1\nb: &k 2\nc: *other\n", "a.yaml")


@pytest.mark.parametrize("content", [b"a: [\n", b"\xff\x00", b"a: *nothing\n"])
def test_invalid_yaml_is_reported_with_its_file(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"a\.yaml is not valid YAML"):
        documents(content, "a.yaml")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a:\n\tb: c\n", "a tab indents it; use spaces (line 2)"),
        (b"a: b\nc: caf\xe9\n", "it is not UTF-8 (line 2)"),
        (b"a: @b\n", "found character that cannot start any token (line 1)"),
    ],
)
def test_tabs_and_other_encodings_are_named(content: bytes, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        documents(content, "a.yaml")
    assert caught.value.message == f"a.yaml is not valid YAML: {why}"


def test_invalid_yaml_is_reported_with_its_line_and_the_problem() -> None:
    with pytest.raises(UsageError) as caught:
        documents(b"kind: Deployment\n  foo: 1\n", "a.yaml")
    assert caught.value.message == (
        "a.yaml is not valid YAML: mapping values are not allowed in this context (line 2)"
    )


@pytest.mark.parametrize("level", ["[", "- ", "{a: "])
def test_deep_nesting_is_refused_and_does_not_crash_the_process(level: str) -> None:
    with pytest.raises(UsageError, match="nested more than 200 levels deep"):
        documents((200_000 * level).encode(), "a.yaml")
    assert nodes(200_000 * level) == []


@pytest.mark.parametrize("number", ["0x" + 5000 * "f", "0o" + 5000 * "7", 5000 * "9", "!!int x"])
def test_numbers_that_python_does_not_print_are_invalid(number: str) -> None:
    with pytest.raises(UsageError, match=r"is not a valid number \(line 2\)"):
        documents(f"a: 1\nb: {number}\n".encode(), "a.yaml")


def test_the_slow_reader_refuses_such_numbers_too() -> None:
    with pytest.raises(ValueError, match="limit"):
        yaml_io.load("b: 0x" + 5000 * "f")


LISTS = "a0: &a0 [x, x]\n" + "".join(
    f"a{each}: &a{each} [{', '.join(9 * [f'*a{each - 1}'])}]\n" for each in range(1, 8)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{each}: &a{each} {{<<: [{', '.join(9 * [f'*a{each - 1}'])}]}}\n" for each in range(1, 8)
)
LONG = f"a: &a {'x' * 20_000}\nb: [{', '.join(600 * ['*a'])}]\n"


@pytest.mark.parametrize("text", [LISTS, MERGES, LONG], ids=["lists", "merges", "long-text"])
def test_a_few_aliases_do_not_stand_for_millions_of_values(text: str) -> None:
    words = "its aliases repeat more than 100000 values"
    with pytest.raises(UsageError, match=words):
        documents(text.encode(), "a.yaml")
    with pytest.raises(ValueError, match=words):
        yaml_io.load(text)
    with pytest.raises(ValueError, match=words):
        list(yaml_io.load_all(text))
    with pytest.raises(BadYaml, match=words):
        read(text)
    assert multiplied(text).startswith(words)


def test_a_value_that_contains_itself_is_refused() -> None:
    words = r"the alias \*a refers to a value around it \(line 1\)"
    for text in ("x: &a [*a]\n", "x: &a {b: {c: *a}}\n", '{"x":&a ["y",{"z":*a}]}\n'):
        with pytest.raises(UsageError, match=words):
            documents(text.encode(), "a.yaml")
        with pytest.raises(ValueError, match=words):
            yaml_io.load(text)


def test_aliases_of_ordinary_size_are_read() -> None:
    shared = "a: &a\n" + "".join(f"  k{each}: {each}\n" for each in range(1000))
    text = shared + "".join(f"b{each}: {{<<: *a}}\n" for each in range(40))
    [found] = documents(text.encode(), "a.yaml")
    assert found["b39"] == found["a"] == yaml_io.load(text)["b0"]
    several = "a: &a [1]\nb: *a\n---\na: &a [2]\nb: *a\n---\na: &a 3\n"
    assert [each["b"] for each in documents(several.encode(), "a.yaml")[:2]] == [[1], [2]]
    assert multiplied("a: [\nb: &a *a\n") == ""


def test_nesting_that_the_slow_parser_can_not_follow_is_an_error_of_the_text() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        yaml_io.load(1500 * "[")
    with pytest.raises(ValueError, match="nested too deeply"):
        list(yaml_io.load_all(1500 * "["))


def test_brackets_in_text_are_not_nesting() -> None:
    [found] = documents(b"text: '" + 2000 * b"[" + b"'\n", "a.yaml")
    assert found["text"] == 2000 * "["


def test_numbers_in_gos_exponent_notation_are_read() -> None:
    text = b"{a: 1e+06, b: 12e4567, c: '1e6', d: 1.5E3, e: x1e6}"
    assert documents(text, "a.yaml") == [
        {"a": 1000000, "b": "12e4567", "c": "1e6", "d": 1500, "e": "x1e6"}
    ]


def test_octal_numbers_and_times_are_read_as_by_go() -> None:
    text = b"mode: 0o755\nlow: -0o7\nold: 0644\nat: 12:30\nports: [2222:22]\nno: 0o8\n"
    found = first_map(text, "a.yaml")
    assert list(found.values()) == [0o755, -7, 0o644, "12:30", ["2222:22"], "0o8"]
    assert first_map(dump_all([found]).encode(), "a.yaml") == found


def test_single_letters_are_booleans_as_for_go() -> None:
    text = b"a: y\nb: [Y, n, N]\nc: 'y'\nd: yn\ny: {n: y}\n"
    expected = {"a": True, "b": [True, False, False], "c": "y", "d": "yn", "y": {"n": True}}
    assert first_map(text, "a.yaml") == expected


def test_strings_stay_strings_in_every_parser() -> None:
    texts = ["12e4567", "1e6", "y", "0o17", "1_000", "web", "1.2.3"]
    assert dump_all([texts]) == (
        "- '12e4567'\n- '1e6'\n- 'y'\n- '0o17'\n- '1_000'\n- web\n- 1.2.3\n"
    )


def test_objects_that_are_only_shown_are_read_back_as_they_were() -> None:
    """libyaml writes them in a twentieth of the time."""
    texts = ["12e4567", "y", "null", "- a", "a: b # c", " x ", "a\n b\n", "ä 🙂", 30 * "long ", ""]
    found = [{"kind": "A", "texts": texts, "n": [1, 1.5, True, None]}, {"kind": "B"}]

    text = dump_all(found, for_files=False)

    assert documents(text.encode(), "a.yaml") == found
    assert "- '12e4567'\n- 'y'" in text.replace("\n  -", "\n-")


def test_tags_of_other_programs_are_ignored() -> None:
    """As by Go's parsers: Home Assistant, CloudFormation and others have tags of their own."""
    text = b"a: !secret key\nb: !include {c: [1, !Ref d]}\n"
    assert documents(text, "a.yaml") == [{"a": "key", "b": {"c": [1, "d"]}}]
    with pytest.raises(UsageError, match="could not determine a constructor"):
        documents(b"a: !!python/name:os.system b\n", "a.yaml")


def test_a_long_text_that_begins_like_a_number_is_written_within_seconds() -> None:
    began = time.process_time()
    dump_all([{"digits": "0" * 30_000 + "x"}])
    assert time.process_time() - began < 3
