"""Messages of promotion commits, and the trailers that are read back from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.message import (
    Change,
    NoteTrailers,
    PromotionNote,
    from_to,
    message,
    read_trailers,
)

SHA = "sha256:" + "ab" * 32
ONE = PromotionNote("promote", "echo", "stage", (Change("ealen/echo", Pin("1"), Pin("2")),), 42)


def test_a_promotion_has_a_subject_and_trailers() -> None:
    assert message([ONE], "https://ci.example/runs/7") == (
        "promote echo to stage: 1 -> 2\n"
        "\n"
        "Ucp-Action: promote\n"
        "Ucp-App: echo\n"
        "Ucp-Env: stage\n"
        "Ucp-Image: ealen/echo\n"
        "Ucp-From: 1\n"
        "Ucp-To: 2\n"
        "Ucp-Sequence: 42\n"
        "Ucp-Run: https://ci.example/runs/7\n"
    )


def test_several_images_are_listed() -> None:
    note = PromotionNote(
        "promote", "shop", "prod",
        (Change("web", Pin("1"), Pin("2")), Change("db", Pin(), Pin(digest=SHA))),
    )  # fmt: skip
    head, body, _ = message([note]).split("\n\n")

    assert head == "promote shop to prod: 2 images"
    assert body == f"web: 1 -> 2\ndb: nothing -> {SHA}"


def test_the_one_of_several_images_that_changes_is_named() -> None:
    web, db = Change("web", Pin("1"), Pin("2")), Change("example.org/db", Pin("7"), Pin("8"))
    one = PromotionNote("promote", "shop", "prod", (web,), several=True)
    two = PromotionNote("rollback", "shop", "prod", (web, db), several=True)
    chart = PromotionNote("promote", "shop", "prod", (Change("chart shop", Pin("1"), Pin("2")),))

    assert message([one]).splitlines()[0] == "promote shop to prod: web 1 -> 2"
    assert message([two]).splitlines()[0] == "roll back shop in prod: 2 images"
    assert message([chart]).splitlines()[0] == "promote shop to prod: chart 1 -> 2"
    assert message([replace(chart, several=True)]).splitlines()[0] == (
        "promote shop to prod: chart shop 1 -> 2"
    )
    assert from_to((web,)) == ("1", "2")
    assert from_to((web,), several=True) == ("web=1", "web=2")
    assert from_to((Change("web", Pin(), Pin("2")),), several=True) == ("", "web=2")
    assert from_to((web, db), most=1) == ("web=1 and 1 more", "web=2 and 1 more")
    assert from_to((web, db), most=2) == ("web=1, example.org/db=7", "web=2, example.org/db=8")


def test_a_batch_has_one_message() -> None:
    notes = [ONE, PromotionNote("promote", "shop", "stage", (Change("web", Pin("1"), Pin("2")),))]

    assert message(notes).startswith(
        "promote echo to stage, shop to stage\n\npromote echo to stage: 1 -> 2\n"
        "promote shop to stage: 1 -> 2\n\nUcp-Action"
    )
    assert message(notes * 30).splitlines()[0] == "promote 60 overlays"


def test_digests_are_shortened_only_in_the_subject() -> None:
    note = PromotionNote("rollback", "echo", "prod", (Change("echo", Pin(digest=SHA), Pin("1")),))
    text = message([note])

    assert text.splitlines()[0] == "roll back echo in prod: sha256:abababababab -> 1"
    assert f"Ucp-From: {SHA}" in text


def test_releases_holds_and_marks_have_their_own_subjects() -> None:
    assert message([PromotionNote("release", "a", "b")]).startswith("release the hold on a in b\n")
    assert message([PromotionNote("hold", "a", "b")]).startswith("hold a in b\n")
    assert message([PromotionNote("mark", "a", "b", sequence=3)]).startswith(
        "note sequence of a in b\n"
    )


def test_trailers_are_read_back() -> None:
    notes = [ONE, PromotionNote("rollback", "shop", "prod")]

    assert read_trailers(message(notes, "https://ci.example/1")) == [
        NoteTrailers("promote", "echo", "stage", 42, "https://ci.example/1"),
        NoteTrailers("rollback", "shop", "prod", None, "https://ci.example/1"),
    ]


def test_other_messages_have_no_trailers() -> None:
    assert read_trailers("fix a typo\n\nUcp-App: in the middle\n\nSigned-off-by: x\n") == []
    assert read_trailers("") == []


@pytest.mark.parametrize("number", ["\N{SUPERSCRIPT TWO}", 5000 * "9", "-1", "x"])
def test_a_sequence_that_nobody_promoted_with_is_ignored(number: str) -> None:
    """Anybody who pushes writes messages, and what is pushed stays in the history."""
    [found] = read_trailers(f"x\n\nUcp-Action: promote\nUcp-App: a\nUcp-Sequence: {number}\n")
    assert (found.app, found.sequence) == ("a", None)


def test_trailers_added_by_a_forge_do_not_hide_ours() -> None:
    ours = message([ONE], "https://ci.example/runs/7")
    squashed = f"{ours}\nCo-authored-by: A <a@example.org>\nSigned-off-by: B <b@example.org>\n"
    assert read_trailers(squashed) == read_trailers(ours) != []
    assert read_trailers(f"{ours}\nBut then it was changed by hand.\n") == []
