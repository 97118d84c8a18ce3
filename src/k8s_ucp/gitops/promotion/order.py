"""The order of promotions: which one may replace which, and holds after rollbacks.

Pushes arrive in any order, so the promoter must define "later": by a sequence (usually the CI's run
number) or by the tag itself as a semantic version. Each image of an overlay has a mark, the highest
one that landed, and optionally a hold. Both are in `.promotion.yaml` beside the kustomization and
change in the same commit as the tag, so the newest commit contains the whole state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_tree

MARKS_FILE = ".promotion.yaml"

HIGHEST_SEQUENCE = 2**63 - 1

_HEADER = "# Order and holds, written by `ucp promote` and `ucp rollback`; kustomize ignores it.\n"

_SEMVER = re.compile(
    r"v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


@dataclass(frozen=True)
class Order:
    """How a promotion is ordered against others. With neither of them, the last push wins."""

    sequence: int | None = None
    source: str = ""
    """What the sequence counts, such as runs of a workflow; "" is unknown.

    Sequences of different sources can't be compared.
    """
    semver: bool = False


UNORDERED = Order()


@dataclass(frozen=True)
class Mark:
    """The recorded order and hold of an image in an overlay."""

    sequence: int | None = None
    source: str = ""
    version: str = ""
    """The highest tag that was promoted with semver."""
    held: tuple[str, ...] = ()
    """Tags or digests that were rolled back, latest last, or the current one if it is held."""


@dataclass(frozen=True)
class Verdict:
    """passes: `mark` is the one to record. superseded, held: `reason` names the cause."""

    kind: Literal["passes", "superseded", "held"]
    mark: Mark
    reason: str = ""
    ended_by: str = ""
    """Held: what ends the hold, after "until"; "": somebody must release it."""


def weigh(
    mark: Mark, order: Order, current: Pin, requested: Pin, *, force: bool = False
) -> Verdict:
    """Whether `requested` may replace `current`, given the recorded mark.

    A lower sequence or version is superseded unless forced. A hold yields only to one above the
    mark, and a hold of the current version to none. Raises UsageError if they can't be compared.
    """
    position = _position(mark, order, current, requested, force=force)
    if position == "below" and not force:
        return Verdict(
            "superseded", mark, f"{_reference(mark, order, current)} is already deployed"
        )
    if is_frozen(mark, current):
        return Verdict("held", mark, f"held at {current}")
    if mark.held and position != "above":
        reason = f"rolled back from {mark.held[-1]}, which is on hold"
        return Verdict("held", mark, reason, _what_ends_hold(mark, order, current))
    return Verdict("passes", _advance(mark, order, requested))


def hold(mark: Mark, bad: Pin, good: Pin) -> Mark:
    """The mark after a rollback from `bad`: it keeps its order, so queued promotions stay out."""
    others = [each for each in mark.held if each not in (str(bad), str(good))]
    return replace(mark, held=(*others, str(bad)))


def is_frozen(mark: Mark, current: Pin) -> bool:
    """The current version is held without a rollback: only releasing the hold allows a change."""
    return str(current) in mark.held


def release(mark: Mark) -> Mark:
    """The mark without its hold."""
    return replace(mark, held=())


def semver_key(tag: str) -> tuple[Any, ...] | None:
    """A sort key for semantic version precedence; None for other tags. Accepts `v1.2.3`."""
    found = _SEMVER.fullmatch(tag) if len(tag) < 1000 else None  # Python reads no long numbers.
    if not found:
        return None
    numbers = tuple(int(found[part]) for part in (1, 2, 3))
    if found[4] is None:
        return (*numbers, 1, ())
    parts: list[tuple[int, int, str]] = []
    for part in found[4].split("."):
        if part.isdigit():
            if len(part) > 1 and part[0] == "0":
                return None
            parts.append((0, int(part), ""))
        else:
            parts.append((1, 0, part))
    return (*numbers, 0, tuple(parts))


def read_marks(text: str | None, where: str) -> dict[str, Mark]:
    """Marks by image name; empty if there is no file. Raises NotEditable."""
    if text is None or not text.strip():
        return {}
    root = read_tree(text, where)
    images = root.own("images") if root.kind == "map" else None
    if root.kind != "map" or images is None or images[1].kind != "map":
        raise NotEditable(
            f"{where} is not a valid .promotion.yaml file", next=_MEND.format(where=where)
        )
    marks: dict[str, Mark] = {}
    for key, value in images[1].pairs:
        if value.kind != "map":
            raise NotEditable(
                f"{where}: {key.value} is not a valid key", next=_MEND.format(where=where)
            )
        marks[key.value] = _mark({pair[0].value: pair[1] for pair in value.pairs}, where)
    return marks


_MEND = "restore {where} from an earlier commit, or delete it to discard sequences and holds"


def write_marks(marks: Mapping[str, Mark]) -> str:
    """The file's text: sorted, with one line per fact, so that diffs are readable."""
    lines = [_HEADER + "images:" + ("" if marks else " {}")]
    for name in sorted(marks):
        mark = marks[name]
        fields = {
            "sequence": "" if mark.sequence is None else str(mark.sequence),
            "source": mark.source and _text(mark.source),
            "version": mark.version and _text(mark.version),
            "held": mark.held and "[" + ", ".join(_text(each) for each in mark.held) + "]",
        }
        written = [f"    {key}: {value}" for key, value in fields.items() if value]
        lines.append(f"  {_text(name)}:" + ("" if written else " {}"))
        lines += written
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A quoted YAML string in ASCII."""
    return '"' + "".join(_escaped(each) for each in value) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if " " <= character <= "~":
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _mark(fields: Mapping[str, Any], where: str) -> Mark:
    unknown = set(fields) - {"sequence", "source", "version", "held"}
    if unknown:
        raise NotEditable(
            f"{where} contains {', '.join(sorted(unknown))}, which this version of ucp "
            "does not support",
            next="use the version of ucp that wrote it, or a newer one",
        )
    number = fields["sequence"].value if "sequence" in fields else ""
    if number and not re.fullmatch(r"[0-9]{1,19}", number):
        raise NotEditable(f"{where}: the sequence {number!r} is not a valid number")
    held = fields.get("held")
    return Mark(
        sequence=int(number) if number else None,
        source=fields["source"].value if "source" in fields else "",
        version=fields["version"].value if "version" in fields else "",
        held=tuple(item.value for item in held.items) if held else (),
    )


def _what_ends_hold(mark: Mark, order: Order, current: Pin) -> str:
    """The promotion that ends a hold without a release; "" if there is none."""
    if order.semver or (mark.sequence is None and semver_key(mark.version)):
        highest = _reference(mark, replace(order, semver=True), current)
        return f"a version above {highest} is promoted with --semver"
    if mark.sequence is None:
        return ""
    return f"a version is promoted with a --sequence above {mark.sequence}"


def _position(
    mark: Mark, order: Order, current: Pin, requested: Pin, *, force: bool
) -> Literal["above", "level", "below", "unordered"]:
    if order.semver:
        key = semver_key(requested.tag)
        if key is None:
            raise UsageError(
                f"--semver: {requested} is not a valid semantic version",
                next="use a tag such as 1.4.0, or --sequence N",
            )
        marks = [found for each in _versions(mark, current) if (found := semver_key(each))]
        highest = max(marks, default=None)
        return "above" if highest is None or key > highest else _level(key == highest)
    if order.sequence is None:
        return "unordered"
    if mark.sequence is None:
        return "above"
    if mark.source and order.source and mark.source != order.source:
        if force:
            return "below"
        raise UsageError(
            f"the sequences {mark.sequence} (of {mark.source}) and {order.sequence} "
            f"(of {order.source}) can't be compared: they come from different sources",
            next=(
                f"use --sequence N with your own number (above {mark.sequence}, or with --force)"
            ),
        )
    return "above" if order.sequence > mark.sequence else _level(order.sequence == mark.sequence)


def _level(same: bool) -> Literal["level", "below"]:
    return "level" if same else "below"


def _versions(mark: Mark, current: Pin) -> tuple[str, ...]:
    """Versions to compare with.

    Held ones too, or the bad tag would be promoted again immediately; and the current one, which
    may have been promoted without an order.
    """
    return (mark.version, *mark.held, current.tag)


def _reference(mark: Mark, order: Order, current: Pin) -> str:
    if order.semver:
        known = [each for each in _versions(mark, current) if semver_key(each)]
        return max(known, key=lambda each: semver_key(each) or ())
    return f"sequence {mark.sequence}"


def _advance(mark: Mark, order: Order, requested: Pin) -> Mark:
    """The mark after a promotion that passed."""
    if order.semver:
        return replace(mark, version=requested.tag, held=())
    if order.sequence is None:
        return mark
    return replace(mark, sequence=order.sequence, source=order.source, held=())
