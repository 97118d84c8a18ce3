"""Order of promotions, holds, and the file that records both."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.order import (
    Mark,
    Order,
    hold,
    read_marks,
    release,
    semver_key,
    weigh,
    write_marks,
)

OLD, NEW = Pin("1.0.0"), Pin("1.1.0")


def kind(mark: Mark, order: Order, current: Pin = OLD, wanted: Pin = NEW, **how: bool) -> str:
    return weigh(mark, order, current, wanted, **how).kind


def test_without_order_the_last_push_wins_and_the_mark_stays() -> None:
    verdict = weigh(Mark(sequence=7), Order(), OLD, NEW)

    assert (verdict.kind, verdict.mark) == ("passes", Mark(sequence=7))


@pytest.mark.parametrize(
    ("mark", "sequence", "expected"),
    [(None, 0, "passes"), (7, 8, "passes"), (7, 7, "passes"), (7, 6, "superseded")],
)
def test_a_lower_sequence_is_superseded(mark: int | None, sequence: int, expected: str) -> None:
    assert kind(Mark(sequence=mark), Order(sequence=sequence)) == expected


def test_force_passes_and_sets_the_mark_to_its_sequence() -> None:
    verdict = weigh(Mark(sequence=7), Order(sequence=3), OLD, NEW, force=True)

    assert (verdict.kind, verdict.mark.sequence) == ("passes", 3)


@pytest.mark.parametrize(
    ("order", "force", "expected"),
    [
        (Order(), False, "held"),
        (Order(sequence=7), False, "held"),
        (Order(sequence=6), False, "superseded"),
        (Order(sequence=6), True, "held"),
        (Order(), True, "held"),
        (Order(sequence=8), False, "passes"),
    ],
)
def test_only_a_sequence_above_the_mark_passes_a_hold(
    order: Order, force: bool, expected: str
) -> None:
    assert kind(Mark(sequence=7, held=("1.1.0",)), order, force=force) == expected


def test_a_promotion_that_passes_a_hold_releases_it() -> None:
    verdict = weigh(Mark(sequence=7, held=("1.1.0",)), Order(sequence=8), OLD, Pin("1.2.0"))

    assert verdict.mark == Mark(sequence=8)


def test_a_rollback_keeps_the_mark() -> None:
    mark = hold(Mark(sequence=7, version="1.1.0"), NEW, OLD)

    assert mark == Mark(sequence=7, version="1.1.0", held=("1.1.0",))
    assert release(mark) == Mark(sequence=7, version="1.1.0")


def test_rolling_back_to_a_held_version_releases_its_hold() -> None:
    assert hold(Mark(held=("1.0.0",)), NEW, OLD).held == ("1.1.0",)


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        ("1.0.0", "1.0.1", "passes"),
        ("1.9.0", "1.10.0", "passes"),
        ("2.0.0", "1.9.9", "superseded"),
        ("1.0.0", "1.0.0-rc.1", "superseded"),
        ("1.0.0-rc.2", "1.0.0-rc.10", "passes"),
        ("v1.0.0", "1.0.0", "passes"),
        ("main", "0.0.1", "passes"),
    ],
)
def test_semver_orders_by_precedence(current: str, wanted: str, expected: str) -> None:
    assert kind(Mark(), Order(semver=True), Pin(current), Pin(wanted)) == expected


def test_semver_compares_with_a_version_promoted_without_an_order() -> None:
    mark = Mark(version="1.0.0")
    assert kind(mark, Order(semver=True), Pin("2.0.0"), Pin("1.5.0")) == "superseded"
    assert kind(mark, Order(semver=True), Pin("2.0.0"), Pin("2.0.1")) == "passes"
    assert kind(mark, Order(semver=True), Pin("nightly"), Pin("1.5.0")) == "passes"


def test_semver_keeps_the_highest_version_across_a_rollback() -> None:
    mark = hold(Mark(version="2.0.0"), Pin("2.0.0"), OLD)

    assert kind(mark, Order(semver=True), OLD, Pin("1.5.0")) == "superseded"
    assert kind(mark, Order(semver=True), OLD, Pin("2.0.0")) == "held"
    assert kind(mark, Order(semver=True), OLD, Pin("2.0.1")) == "passes"


def test_semver_does_not_restore_a_held_version_without_a_mark() -> None:
    mark = hold(Mark(), Pin("2.0.0"), OLD)

    assert kind(mark, Order(semver=True), OLD, Pin("2.0.0")) == "held"


@pytest.mark.parametrize("tag", ["main", "1.0", "1.0.0.0", "01.0.0", "1.0.0-01"])
def test_semver_refuses_other_tags(tag: str) -> None:
    with pytest.raises(UsageError, match="semantic version"):
        weigh(Mark(), Order(semver=True), OLD, Pin(tag))


def test_sequences_of_different_sources_are_not_compared() -> None:
    mark, order = Mark(sequence=900, source="shop/build.yml"), Order(3, "shop/deploy.yml")

    with pytest.raises(UsageError, match=r"shop/build\.yml.*shop/deploy\.yml"):
        weigh(mark, order, OLD, NEW)
    assert weigh(mark, order, OLD, NEW, force=True).mark == Mark(3, "shop/deploy.yml")


def test_no_tag_is_long_enough_for_a_number_that_python_does_not_read() -> None:
    assert semver_key("1.0." + 5000 * "9") is None


def test_semver_key_follows_the_specification() -> None:
    ascending = [
        "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
        "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
    ]  # fmt: skip
    keys = [semver_key(each) for each in ascending]

    assert keys == sorted(keys, key=lambda key: key or ())
    assert len(set(keys)) == len(keys)


words = st.text(max_size=12)
marks = st.builds(
    Mark,
    sequence=st.none() | st.integers(0, 2**63 - 1),
    source=words,
    version=words,
    held=st.lists(words, max_size=3).map(tuple),
)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.text(min_size=1, max_size=20), marks, max_size=4))
def test_marks_survive_writing_and_reading(known: dict[str, Mark]) -> None:
    assert read_marks(write_marks(known), ".promotion.yaml") == known


def test_a_missing_or_empty_file_has_no_marks() -> None:
    assert read_marks(None, "x") == {}
    assert read_marks("", "x") == {}


@pytest.mark.parametrize(
    "text",
    [
        "[]", "images: 1", "images: {a: 1}", "images: {a: {sequence: x}}",
        "images: {a: {later: 1}}", "a: [", "images: {a: {sequence: -1}}",
        "images: {a: {sequence: 99999999999999999999}}",
    ],
)  # fmt: skip
def test_an_invalid_marks_file_is_reported_with_its_path(text: str) -> None:
    with pytest.raises(NotEditable, match=r"apps/x/\.promotion\.yaml"):
        read_marks(text, "apps/x/.promotion.yaml")
