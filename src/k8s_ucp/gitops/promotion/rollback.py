"""Rollbacks: finds the previous version and holds the bad one. Also holds without one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion import order as order_of
from k8s_ucp.gitops.promotion.decision import Decision, seen_otherwise
from k8s_ucp.gitops.promotion.message import PromotionNote, are_some
from k8s_ucp.gitops.promotion.order import Mark
from k8s_ucp.gitops.promotion.overlay import Overlay, Tip, nearest, read_overlay, written
from k8s_ucp.gitops.promotion.targets.chart import ChartContent


@dataclass(frozen=True)
class PinsAtCommit:
    """An overlay's versions at an earlier commit."""

    commit: str
    pins: Mapping[str, Pin]


@dataclass(frozen=True)
class Rollback:
    """A requested rollback from `bad`. Without pins, only a hold is set or released."""

    app: str
    env: str
    pins: Mapping[str, Pin] = field(default_factory=dict)
    bad: Mapping[str, Pin] = field(default_factory=dict)
    charts: Mapping[str, ChartContent] = field(default_factory=dict)
    """Files of charts to restore, by name."""
    release_hold: bool = False
    hold: bool = False
    """Hold the current version, so that nothing replaces it."""
    seen: Mapping[str, str] = field(default_factory=dict)
    """Versions by image as displayed to the user: any other version is a conflict."""


def decide_rollback(tip: Tip, rollback: Rollback) -> Decision:
    """What to write for a rollback at this commit. Raises what read_overlay raises."""
    overlay = read_overlay(tip, rollback.app, rollback.env)
    subject = f"{rollback.app} in {rollback.env}"
    pins = {name: pin for name, pin in rollback.pins.items() if name in overlay.pins}
    asked = overlay.changes(pins)
    changes = tuple(each for each in asked if each.old != each.new)
    kind = "rollback" if pins else "hold" if rollback.hold else "release"
    several = are_some(changes, overlay.pins)
    note = PromotionNote(kind, rollback.app, rollback.env, changes, several=several)
    bad = {each.image: str(rollback.bad.get(each.image, "")) for each in changes}
    meanwhile = seen_otherwise(overlay.pins, {**bad, **rollback.seen})
    if meanwhile:
        advice = "check it, then run the rollback again if it is bad too" if pins else "look at it"
        return Decision("conflict", note, asked, reason=f"{subject} {meanwhile}", next=advice)
    marks = dict(overlay.marks)
    if rollback.hold:
        held = {name: pin for name, pin in overlay.pins.items() if pin}
        asked = overlay.changes(held)
        for name, pin in held.items():
            marks[name] = order_of.hold(marks.get(name, Mark()), pin, pin)
    for change in changes:
        mark = marks.get(change.image, Mark())
        marks[change.image] = order_of.hold(mark, change.old, change.new)
    if rollback.release_hold:
        marks = {name: order_of.release(mark) for name, mark in marks.items()}
    pins = {each.image: each.new for each in changes}
    writes = written(overlay, pins, marks, rollback.charts)
    if not writes:
        has = {"rollback": "already has it", "hold": "is already held", "release": "has no hold"}
        reason = f"{subject} {has[kind]}"
        return Decision("unchanged", note, asked, reason=reason)
    if pins and not changes:
        note = PromotionNote("release", rollback.app, rollback.env)
    rolled_back = () if rollback.release_hold else [str(each.old) for each in changes if each.old]
    locations = overlay.location_texts(pins)
    return Decision("promoted", note, asked, writes, locations=locations, held=tuple(rolled_back))


def previous(overlay: Overlay, pasts: Sequence[PinsAtCommit]) -> dict[str, Pin]:
    """The versions before the current ones, skipping held ones.

    pasts: newest first. Raises UcpError if the history has none.
    """
    held = {name: mark.held for name, mark in overlay.marks.items()}
    for past in pasts:
        differing = _differing(overlay, past.pins)
        if differing and not any(
            str(pin) in held.get(name, ()) or not _can_restore(overlay, name, pin)
            for name, pin in differing.items()
        ):
            return differing
    raise UcpError(
        f"history has no earlier version of {overlay.app} in {overlay.env}",
        next=f"ucp history {overlay.app} --env {overlay.env}",
    )


def named(overlay: Overlay, pasts: Sequence[PinsAtCommit], target: str) -> dict[str, Pin]:
    """The versions that `--to` selects: a tag or digest that was deployed, or a commit.

    pasts: newest first. Raises UcpError with a close match.
    """
    for past in pasts:
        found = {
            name: pin
            for name, pin in past.pins.items()
            if name in overlay.pins and target in (pin.tag, pin.digest, str(pin))
        }
        if found:
            return found
    for past in pasts:
        if len(target) >= 7 and past.commit.startswith(target.lower()):
            return {
                name: pin
                for name, pin in past.pins.items()
                if name in overlay.pins and _can_restore(overlay, name, pin)
            }
    known = list(dict.fromkeys(str(pin) for past in pasts for pin in past.pins.values() if pin))
    raise UcpError(
        f"{overlay.app} in {overlay.env} never had {target}", next=nearest(target, known[:20])
    )


def _can_restore(overlay: Overlay, name: str, pin: Pin) -> bool:
    return bool(pin) or overlay.target(name).can_be_untagged


def _differing(overlay: Overlay, pins: Mapping[str, Pin]) -> dict[str, Pin]:
    return {
        name: pin
        for name, pin in pins.items()
        if name in overlay.pins and overlay.pins[name] != pin
    }
