"""Three-way merge of lists in generated files, item by item."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.gitops.publish.list_merge import ItemConflict, merge_lists

HEAD = "# header\nkind: Kustomization\n\nresources:{}\n\nconfigMapGenerator:\n  - name: list\n"


def text(*names: str, tail: str = "") -> str:
    """A file like clusters/kustomization.yaml."""
    resources = "".join(f"\n  - overlays/{name}" for name in names) or " []"
    literals = "".join(f"\n      - {name}=" for name in names) or " []"
    return f"{HEAD.format(resources)}    literals:{literals}\n{tail}"


def only_equal(base: str, ours: str, theirs: str) -> str:
    """A text merge that resolves only the trivial cases."""
    if base == theirs:
        return ours
    if base == ours or ours == theirs:
        return theirs
    raise ItemConflict("text")


def merged(base: str, ours: str, theirs: str, *, keep: frozenset[str] = frozenset()) -> str:
    return merge_lists(
        base,
        ours,
        theirs,
        keep=lambda item: item.removeprefix("overlays/").removesuffix("=") in keep,
        merge_text=only_equal,
    )


def test_items_added_on_both_sides_are_kept() -> None:
    result = merged(text("stage"), text("stage", "eu"), text("stage", "qa"))
    assert result == text("stage", "qa", "eu")


def test_an_item_added_on_both_sides_is_listed_once() -> None:
    assert merged(text("a"), text("a", "b"), text("a", "b")) == text("a", "b")


def test_an_item_removed_by_a_person_stays_removed() -> None:
    assert merged(text("a", "b"), text("a"), text("a", "b", "c")) == text("a", "c")


def test_an_item_dropped_by_the_render_is_removed_unless_it_is_kept() -> None:
    before = text("a", "b")
    assert merged(before, before, text("a")) == text("a")
    assert merged(before, before, text("a"), keep=frozenset({"b"})) == before
    assert merged(before, text("a", "b", "c"), text("a")) == text("a", "c")


def test_an_empty_list_on_either_side_is_merged() -> None:
    assert merged(text(), text("eu"), text("qa")) == text("eu", "qa")
    assert merged(text("a"), text(), text("a", "b")) == text("b")
    assert merged(text("a"), text("a"), text()) == text()


def test_comments_move_with_their_items() -> None:
    ours = text("a", "b").replace("  - overlays/b", "  # mine\n  - overlays/b  # yes")
    assert merged(text("a", "b"), ours, text("a", "new", "b")) == ours.replace(
        "  # mine", "  - overlays/new\n  # mine"
    ).replace("      - b=", "      - new=\n      - b=")


def test_another_indentation_is_kept() -> None:
    ours = text("a").replace("  - overlays", "- overlays")
    assert "\n- overlays/a\n- overlays/b\n" in merged(text("a"), ours, text("a", "b"))


def test_items_of_several_lines_are_merged() -> None:
    base = "environments:\n  - {name: a}\n"
    ours = "environments:\n  - {name: a}\n  - name: eu\n    promotesFrom: a\n"
    theirs = "environments:\n  - {name: a}\n  - {name: b, promotesFrom: a}\n"
    assert merged(base, ours, theirs) == (
        "environments:\n  - {name: a}\n  - {name: b, promotesFrom: a}\n"
        "  - name: eu\n    promotesFrom: a\n"
    )


def test_an_item_changed_only_by_the_render_is_updated() -> None:
    base = "environments:\n  - {name: a}\n  - {name: b, promotesFrom: a}\n"
    theirs = base.replace("promotesFrom: a", "promotesFrom: c")
    ours = base + "  - {name: eu}\n"
    assert merged(base, ours, theirs) == theirs + "  - {name: eu}\n"


def test_an_item_changed_on_both_sides_is_a_conflict() -> None:
    base = "environments:\n  - {name: b, promotesFrom: a}\n"
    with pytest.raises(ItemConflict):
        merged(base, base.replace(": a", ": x"), base.replace(": a", ": y"))


def test_text_around_the_lists_is_merged_as_text() -> None:
    tail = "namePrefix: mine\n"
    assert merged(text("a"), text("a", "eu", tail=tail), text("a", "b")) == text(
        "a", "b", "eu", tail=tail
    )


@pytest.mark.parametrize(
    "odd",
    [
        "resources: [a, b]\n",
        "resources:\n  - a\n  - a\n",
        "resources: # later\n",
        "resources:\n  -\n    - a\n",
        "resources:\n  nested: true\n",
        "resources:\n  - a\nresources:\n  - b\n",
        "",
        "\n\n",
    ],
)
def test_a_text_without_usable_lists_is_merged_as_text(odd: str) -> None:
    assert merged(odd, odd, odd + "# x\n") == odd + "# x\n"


names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@settings(deadline=None, max_examples=300)
@given(names, names, names, st.frozensets(st.sampled_from("abcdefgh")))
def test_the_items_are_those_of_a_three_way_merge(
    base: list[str], ours: list[str], theirs: list[str], keep: frozenset[str]
) -> None:
    result = merged(text(*base), text(*ours), text(*theirs), keep=keep)
    expected = {
        name
        for name in {*base, *ours, *theirs}
        if (name in ours and (name in theirs or name not in base or name in keep))
        or (name in theirs and name not in base)
    }
    parsed = YAML(typ="safe", pure=True).load(result)
    listed = [each.removeprefix("overlays/") for each in parsed["resources"]]
    assert set(listed) == expected
    assert len(listed) == len(expected)
    assert [each + "=" for each in listed] == parsed["configMapGenerator"][0]["literals"]
    assert [each for each in listed if each in ours] == [each for each in ours if each in listed]
    again = merged(text(*theirs), result, text(*theirs), keep=keep)
    assert again == result


def test_a_long_line_is_merged_within_seconds() -> None:
    """Whoever pushes it would keep the next start busy for hours."""
    lines = f"resources:\n  - a{500_000 * ' '}b\n"
    began = time.process_time()
    assert merged(lines, lines, lines) == lines
    assert time.process_time() - began < 10
