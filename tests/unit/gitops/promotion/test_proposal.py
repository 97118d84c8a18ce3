"""Changes of an open pull request that are kept on a newer base."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Intent, decide
from k8s_ucp.gitops.promotion.message import message, read_origins
from k8s_ucp.gitops.promotion.order import UNORDERED, Order
from k8s_ucp.gitops.promotion.proposal import Pending, decide_beside, find_pending
from k8s_ucp.gitops.promotion.rollback import Rollback, decide_rollback
from tests.unit.gitops.promotion.tips import MemoryTip, kustomization, tip

STAGE = "apps/shop/overlays/stage/kustomization.yaml"
BASE = tip({STAGE: kustomization(web="1", db="7")})


def after(there: MemoryTip, name: str, tag: str, order: Order = UNORDERED) -> MemoryTip:
    """The tip after the promotion of one image."""
    decision = decide(there, Intent("shop", "stage", images={name: Pin(tag)}, order=order))
    assert decision.status == "promoted"
    return MemoryTip({**there.content, **decision.writes})


def pending(base: MemoryTip, head: MemoryTip, origins: Mapping[str, str]) -> Pending:
    return find_pending(base, head, "shop", "stage", origins)


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [
        (UNORDERED, None, True),
        (Order(sequence=5), None, True),
        (UNORDERED, ("3", UNORDERED), False),
        (UNORDERED, ("3", Order(sequence=9)), False),
        (Order(sequence=5), ("3", UNORDERED), False),
        (Order(sequence=5), ("3", Order(sequence=4)), True),
        (Order(sequence=5), ("3", Order(sequence=5)), False),
        (Order(sequence=5), ("3", Order(sequence=6)), False),
        (Order(sequence=5, source="a"), ("3", Order(sequence=4, source="b")), False),
        (Order(semver=True), ("1.9", UNORDERED), False),
        (Order(semver=True), ("1.9.0", Order(semver=True)), True),
        (Order(semver=True), ("2.0.1", Order(semver=True)), False),
    ],
)
def test_a_proposal_is_kept_unless_the_base_has_something_newer(
    ours: Order, theirs: tuple[str, Order] | None, kept: bool
) -> None:
    head = after(BASE, "web", "2.0.0", ours)
    base = after(BASE, "web", *theirs) if theirs else BASE

    found = pending(base, head, {"web": "1"})

    assert [each.image for each in found.kept] == ["web"] * kept
    assert [each.image for each in found.dropped] == ["web"] * (not kept)
    expected = after(base, "web", "2.0.0", ours) if kept else base
    assert {**base.content, **found.writes} == expected.content


def test_images_that_are_in_the_base_or_were_not_proposed_are_not_pending() -> None:
    head = after(BASE, "web", "2")

    assert pending(after(BASE, "web", "2"), head, {"web": "1"}) == Pending({}, (), ())
    # The base has a newer db than the branch, which proposes nothing for it.
    assert pending(after(BASE, "db", "8"), head, {"web": "1"}).dropped == ()
    # The image was removed.
    assert pending(tip({STAGE: kustomization(db="7")}), head, {"web": "1"}) == Pending({}, (), ())


def test_a_later_hold_drops_a_proposal_without_an_order() -> None:
    hold = decide_rollback(BASE, Rollback("shop", "stage", hold=True))
    base = MemoryTip({**BASE.content, **hold.writes})

    found = pending(base, after(BASE, "web", "2"), {"web": "1"})

    assert (found.kept, len(found.dropped)) == ((), 1)


def test_an_older_image_among_several_does_not_replace_a_newer_proposed_one() -> None:
    head = after(BASE, "web", "3", Order(sequence=9))
    both = {"web": Pin("2"), "db": Pin("8")}
    intent = Intent("shop", "stage", images=both, order=Order(sequence=5))

    decision = decide_beside(BASE, head, intent, decide(BASE, intent), {"web": "1"})

    written = {**BASE.content, **decision.writes}[STAGE]
    assert written == kustomization(web="3", db="8").encode()
    assert [(each.image, str(each.new)) for each in decision.kept] == [("web", "3")]


def test_the_message_of_a_proposal_contains_the_replaced_versions() -> None:
    intent = Intent("shop", "stage", images={"web": Pin("2")}, order=Order(sequence=5))
    text = message([decide(BASE, intent).note])

    assert read_origins(text, "shop", "stage") == {"web": "1"}
    assert read_origins(text, "shop", "prod") is None
    assert read_origins("Merge branch 'main' into ucp/shop/stage", "shop", "stage") is None
