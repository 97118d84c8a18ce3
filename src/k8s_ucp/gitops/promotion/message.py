"""Writes and parses the message of a promotion's commit: text for people, trailers for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.targets.kinds import CHART

SUBJECT_WIDTH = 100
DEFAULT = "the default version"
"""Version of an image for which the overlay sets none."""


@dataclass(frozen=True)
class Change:
    """The version change of one image or chart in one overlay."""

    image: str
    old: Pin
    new: Pin


@dataclass(frozen=True)
class PromotionNote:
    """What the commit does in one overlay. kind: promote, rollback, hold, release or mark."""

    kind: str
    app: str
    env: str
    changes: tuple[Change, ...] = ()
    sequence: int | None = None
    several: bool = False
    """The overlay has other images (or charts), so the changed ones must be named."""


@dataclass(frozen=True)
class NoteTrailers:
    """A commit's note, parsed from its trailers."""

    kind: str
    app: str
    env: str
    sequence: int | None
    run: str


def message(notes: Sequence[PromotionNote], link: str = "") -> str:
    """The commit message: subject, body if there is more to say, trailers."""
    body = [_line(note) for note in notes] if len(notes) > 1 else _body(notes[0])
    parts = [subject(notes), "\n".join(body), "\n".join(_trailers(notes, link))]
    return "\n\n".join(part for part in parts if part) + "\n"


def subject(notes: Sequence[PromotionNote]) -> str:
    """One line: what is promoted where, from which to which version."""
    if len(notes) == 1:
        return _line(notes[0])
    summary = ", ".join(f"{note.app} to {note.env}" for note in notes)
    text = f"promote {summary}"
    return text if len(text) <= SUBJECT_WIDTH else f"promote {len(notes)} overlays"


def from_to(
    changes: Sequence[Change], *, several: bool = False, most: int | None = None
) -> tuple[str, str]:
    """Old and new version as text; image names are included only if they are needed.

    several: the overlay has other images, so a version without a name would be ambiguous. most: how
    many images are named, the others are counted; None for all.
    """
    if len({(change.old, change.new) for change in changes}) == 1 and not several:
        return str(changes[0].old), str(changes[0].new or DEFAULT)
    return (
        _brief([f"{change.image}={change.old}" for change in changes if change.old], most),
        _brief([f"{change.image}={change.new or DEFAULT}" for change in changes], most),
    )


def _brief(words: Sequence[str], most: int | None) -> str:
    left = 0 if most is None else max(len(words) - most, 0)
    return ", ".join(words[: len(words) - left]) + (f" and {left} more" if left else "")


def are_some(changes: Sequence[Change], names: Iterable[str]) -> bool:
    """The overlay has other images (or charts) than those that change.

    names: of all images and charts of the overlay.
    """
    kinds = {each.image.startswith(CHART) for each in changes}
    return len(changes) < sum(name.startswith(CHART) in kinds for name in names)


def change_words(changes: Sequence[Change], *, several: bool = False) -> str:
    """The changes as one text: `1 -> 2`; in an overlay with several images `web 1 -> 2`."""
    if several and len(changes) == 1:
        return f"{changes[0].image} {change_words(changes)}"
    old, new = from_to(changes, several=several)
    return f"{old} -> {new}" if old not in ("", new) else new


def as_data(changes: Sequence[Change]) -> dict[str, Any]:
    """The changes as JSON data."""
    old, new = from_to(changes)
    images = [
        {"name": each.image, "from": str(each.old) or None, "to": str(each.new)} for each in changes
    ]
    return {"from": old or None, "to": new or None, "images": images}


def read_trailers(text: str) -> list[NoteTrailers]:
    """The notes in a commit message that ucp wrote; empty for other messages."""
    entries: list[NoteTrailers] = []
    found = _ucp_trailers(text)
    run = next((value for key, value in found if key == "Run"), "")
    trailers: dict[str, str] = {}
    for key, value in [*found, ("Action", "")]:
        if key == "Action":
            if trailers:
                entries.append(_entry(trailers, run))
            trailers = {}
        trailers[key] = value
    return entries


def _ucp_trailers(text: str) -> list[tuple[str, str]]:
    """(key without `Ucp-`, value) of each of our trailers.

    A forge that squashes commits adds trailers, such as `Co-authored-by`, in paragraphs after ours.
    """
    for paragraph in reversed(text.strip().split("\n\n")):
        found = re.findall(r"^Ucp-([A-Za-z]+): (.*)$", paragraph, flags=re.MULTILINE)
        if found and found[0][0] == "Action":
            return found
        if not all(re.match(r"[A-Za-z][A-Za-z-]*: ", line) for line in paragraph.splitlines()):
            break
    return []


def read_origins(text: str, app: str, env: str) -> dict[str, str] | None:
    """The previous version of each image and chart, by name, from a commit message.

    None if the message isn't that of a promotion of this app to this environment.
    """
    found = [each for each in read_trailers(text) if (each.app, each.env) == (app, env)]
    if not any(each.kind in ("promote", "mark") for each in found):
        return None
    origins: dict[str, str] = {}
    here, name = ("", ""), ""
    for key, value in re.findall(r"^Ucp-([A-Za-z]+): (.*)$", text, flags=re.MULTILINE):
        if key == "App":
            here = (value, "")
        elif key == "Env":
            here = (here[0], value)
        elif key in ("Image", "Chart") and here == (app, env):
            name = value if key == "Image" else CHART + value
            origins[name] = ""
        elif key == "From" and here == (app, env):
            origins[name] = value
    return origins


def _entry(trailers: dict[str, str], run: str) -> NoteTrailers:
    number = trailers.get("Sequence", "")
    return NoteTrailers(
        kind=trailers.get("Action", ""),
        app=trailers.get("App", ""),
        env=trailers.get("Env", ""),
        sequence=int(number) if re.fullmatch(r"[0-9]{1,19}", number) else None,
        run=run,
    )


def _line(note: PromotionNote) -> str:
    if note.kind == "release":
        return f"release the hold on {note.app} in {note.env}"
    if note.kind == "hold":
        return f"hold {note.app} in {note.env}"
    if not note.changes:
        return f"note sequence of {note.app} in {note.env}"
    change = change_words(note.changes, several=note.several)
    if len(note.changes) > 1 and "=" in change:
        change = f"{len(note.changes)} images"
    elif all(each.image.startswith(CHART) for each in note.changes) and not note.several:
        change = f"chart {change}"
    verb = "roll back" if note.kind == "rollback" else "promote"
    preposition = "in" if note.kind == "rollback" else "to"
    return f"{verb} {note.app} {preposition} {note.env}: {shorten_digests(change)}"


def shorten_digests(text: str) -> str:
    """Shorten digests to their first 12 digits."""
    return re.sub(r"(sha(?:256|512):[0-9a-f]{12})[0-9a-f]+", r"\1", text)


def _body(note: PromotionNote) -> list[str]:
    if len(note.changes) < 2:
        return []
    return [
        f"{each.image}: {each.old or 'nothing'} -> {each.new or DEFAULT}" for each in note.changes
    ]


def _trailers(notes: Sequence[PromotionNote], link: str) -> list[str]:
    lines = []
    for note in notes:
        lines += [f"Ucp-Action: {note.kind}", f"Ucp-App: {note.app}", f"Ucp-Env: {note.env}"]
        for change in note.changes:
            chart = change.image.startswith(CHART)
            name = change.image.removeprefix(CHART)
            lines.append(f"Ucp-{'Chart' if chart else 'Image'}: {name}")
            if change.old:
                lines.append(f"Ucp-From: {change.old}")
            if change.new:
                lines.append(f"Ucp-To: {change.new}")
        if note.sequence is not None:
            lines.append(f"Ucp-Sequence: {note.sequence}")
    if link:
        lines.append(f"Ucp-Run: {link}")
    return lines
