"""Rollbacks: the target version, the hold on the bad one, and concurrent changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Intent, decide
from k8s_ucp.gitops.promotion.order import Order
from k8s_ucp.gitops.promotion.overlay import read_overlay
from k8s_ucp.gitops.promotion.rollback import (
    PinsAtCommit,
    Rollback,
    decide_rollback,
    named,
    previous,
)
from tests.unit.gitops.promotion.tips import MemoryTip, kustomization, shop, tip

STAGE = "apps/echo/overlays/stage/kustomization.yaml"


def past(*tags: str) -> list[PinsAtCommit]:
    return [PinsAtCommit(f"{place:040x}", {"echo": Pin(tag)}) for place, tag in enumerate(tags)]


def back(to: str, bad: str, **more: bool) -> Rollback:
    return Rollback("echo", "stage", {"echo": Pin(to)}, {"echo": Pin(bad)}, **more)


def rolled(there: MemoryTip, rollback: Rollback) -> MemoryTip:
    decision = decide_rollback(there, rollback)
    assert decision.status == "promoted"
    return MemoryTip({**there.content, **decision.writes})


def status(there: MemoryTip, tag: str, sequence: int | None = None) -> str:
    intent = Intent("echo", "stage", Pin(tag), order=Order(sequence=sequence))
    return decide(there, intent).status


def test_the_bad_tag_is_held_until_a_newer_one_is_promoted() -> None:
    there = shop(stage="1")
    wanted = Intent("echo", "stage", Pin("2"), order=Order(sequence=7))
    there = MemoryTip({**there.content, **decide(there, wanted).writes})

    there = rolled(there, back("1", "2"))

    assert there.text(STAGE) == kustomization(echo="1")
    assert status(there, "2") == "held"
    assert status(there, "3") == "held"
    assert status(there, "2", 7) == "held"
    assert status(there, "2", 6) == "superseded"
    assert status(there, "3", 8) == "promoted"
    assert status(there, "1") == "unchanged"


RELEASE = "ucp rollback echo --env stage --release-hold"


SEQUENCE = " until a version is promoted with a --sequence above 7"
VERSION = " until a version above 2.0.0 is promoted with --semver"


@pytest.mark.parametrize(
    ("landed", "tried", "until"),
    [
        (Order(), Order(), ""),
        (Order(sequence=7), Order(), SEQUENCE),
        (Order(sequence=7), Order(7), SEQUENCE),
        (Order(semver=True), Order(), VERSION),
        (Order(), Order(semver=True), VERSION),
    ],
)
def test_a_refusal_names_what_ends_the_hold(landed: Order, tried: Order, until: str) -> None:
    there = shop(stage="1.0.0")
    wanted = Intent("echo", "stage", Pin("2.0.0"), order=landed)
    there = MemoryTip({**there.content, **decide(there, wanted).writes})
    there = rolled(there, back("1.0.0", "2.0.0"))

    found = decide(there, Intent("echo", "stage", Pin("2.0.0"), order=tried))

    assert (found.status, found.next) == ("held", RELEASE)
    assert found.reason == f"echo in stage was rolled back from 2.0.0, which is on hold{until}"


def test_a_release_allows_promotions_again() -> None:
    there = rolled(shop(stage="2"), back("1", "2"))

    there = rolled(there, Rollback("echo", "stage", release_hold=True))

    assert there.text(STAGE) == kustomization(echo="1")
    assert status(there, "2") == "promoted"
    again = decide_rollback(there, Rollback("echo", "stage", release_hold=True))
    assert (again.status, again.writes) == ("unchanged", {})


def test_a_hold_keeps_the_current_tag_until_it_is_released() -> None:
    there = rolled(shop(stage="2"), Rollback("echo", "stage", hold=True))

    assert there.text(STAGE) == kustomization(echo="2")
    assert status(there, "3") == "held"
    assert status(there, "3", 8) == "held"
    assert status(there, "2") == "unchanged"
    intent = Intent("echo", "stage", Pin("3"))
    found = decide(there, intent)
    assert (found.reason, found.next) == (
        "echo in stage was held at 2",
        "ucp rollback echo --env stage --release-hold",
    )
    again = decide_rollback(there, Rollback("echo", "stage", hold=True))
    assert (again.status, again.reason) == ("unchanged", "echo in stage is already held")
    back_again = rolled(there, back("1", "2"))
    assert status(back_again, "3", 8) == "promoted"
    there = rolled(there, Rollback("echo", "stage", release_hold=True))
    assert status(there, "3") == "promoted"


@pytest.mark.parametrize(
    "wanted",
    [
        Rollback("echo", "stage", {"echo": Pin("1")}, {"echo": Pin("3")}, seen={"echo": "2"}),
        Rollback("echo", "stage", hold=True, seen={"echo": "2"}),
        Rollback("echo", "stage", release_hold=True, seen={"echo": "2"}),
    ],
)
def test_a_rollback_conflicts_if_the_seen_version_changed(wanted: Rollback) -> None:
    found = decide_rollback(shop(stage="3"), wanted)

    assert (found.status, found.writes) == ("conflict", {})
    assert found.reason == "echo in stage changed to 3 in the meantime"
    assert decide_rollback(shop(stage="2"), replace(wanted, bad={"echo": Pin("2")})).status != (
        "conflict"
    )


def test_a_promotion_replaces_only_the_seen_version() -> None:
    intent = Intent("echo", "stage", Pin("2"), seen={"echo": "1"})

    assert decide(shop(stage="1"), intent).status == "promoted"
    assert decide(shop(stage="2"), intent).status == "unchanged"
    assert decide(shop(stage="3"), intent).status == "conflict"


def test_rolling_back_with_a_release_leaves_no_hold() -> None:
    there = rolled(shop(stage="2"), back("1", "2", release_hold=True))

    assert status(there, "2") == "promoted"


def test_a_version_deployed_in_the_meantime_is_not_rolled_back() -> None:
    decision = decide_rollback(shop(stage="3"), back("1", "2"))

    assert (decision.status, decision.writes) == ("conflict", {})


def test_a_rerun_is_unchanged() -> None:
    there = rolled(shop(stage="2"), back("1", "2"))

    assert decide_rollback(there, back("1", "2")).status == "unchanged"


def test_the_previous_version_is_the_one_before_the_current_one() -> None:
    overlay = read_overlay(shop(stage="3"), "echo", "stage")

    assert previous(overlay, past("3", "3", "2", "1")) == {"echo": Pin("2")}


def test_a_rollback_names_the_versions_that_it_holds() -> None:
    there = shop(stage="2")

    assert decide_rollback(there, back("1", "2")).held == ("2",)
    assert decide_rollback(there, back("1", "2", release_hold=True)).held == ()


def test_a_second_rollback_goes_one_version_further_back() -> None:
    there = rolled(shop(stage="3"), back("2", "3"))

    overlay = read_overlay(there, "echo", "stage")
    assert previous(overlay, past("2", "3", "2", "1")) == {"echo": Pin("1")}


def test_all_images_are_rolled_back_together() -> None:
    there = tip({STAGE: kustomization(web="2", worker="2", new="1")})
    overlay = read_overlay(there, "echo", "stage")
    before = PinsAtCommit("c", {"web": Pin("1"), "worker": Pin("1")})

    assert previous(overlay, [before]) == {"web": Pin("1"), "worker": Pin("1")}


def test_a_rollback_without_an_earlier_version_is_refused() -> None:
    overlay = read_overlay(shop(stage="1"), "echo", "stage")

    with pytest.raises(UcpError, match="no earlier version"):
        previous(overlay, past("1", "1"))


@pytest.mark.parametrize(
    ("path", "untagged", "tagged"),
    [
        (
            STAGE,
            "images:\n- name: echo\n- name: db\n  newTag: '1'\n",
            "images:\n- name: echo\n  newTag: v2\n- name: db\n  newTag: '1'\n",
        ),
        (
            "apps/echo/overlays/stage/pod.yaml",
            "spec: {containers: [{name: c, image: echo}]}\n",
            "spec: {containers: [{name: c, image: echo:v2}]}\n",
        ),
    ],
)
def test_the_first_promotion_of_an_untagged_image_can_be_rolled_back(
    path: str, untagged: str, tagged: str
) -> None:
    there = tip({path: tagged})
    overlay = read_overlay(there, "echo", "stage")
    before = read_overlay(tip({path: untagged}), "echo", "stage")
    states = [PinsAtCommit("b" * 40, overlay.pins), PinsAtCommit("a" * 40, before.pins)]

    pins = previous(overlay, states)

    assert pins == {"echo": Pin()}
    assert named(overlay, states, "aaaaaaa")["echo"] == Pin()
    decision = decide_rollback(there, Rollback("echo", "stage", pins, overlay.pins))
    assert (decision.status, decision.writes[path]) == ("promoted", untagged.encode())
    assert status(MemoryTip({**there.content, **decision.writes}), "v2") == "held"


def test_a_named_version_must_have_been_deployed_before() -> None:
    overlay = read_overlay(shop(stage="3"), "echo", "stage")

    assert named(overlay, past("3", "2.0", "1.0"), "1.0") == {"echo": Pin("1.0")}
    with pytest.raises(UcpError, match=r"never had 1\.1") as found:
        named(overlay, past("3", "2.0", "1.0"), "1.1")
    assert found.value.next == "did you mean 1.0?"


def test_a_tag_that_looks_like_a_commit_is_a_tag_first() -> None:
    overlay = read_overlay(shop(stage="x"), "echo", "stage")
    pasts = [
        PinsAtCommit("abcdef0" + "0" * 33, {"echo": Pin("of-the-commit")}),
        PinsAtCommit("1" * 40, {"echo": Pin("abcdef0")}),
    ]

    assert named(overlay, pasts, "abcdef0") == {"echo": Pin("abcdef0")}
    assert named(overlay, pasts, "1111111") == {"echo": Pin("abcdef0")}
    assert named(overlay, pasts[:1], "ABCDEF0") == {"echo": Pin("of-the-commit")}
