"""Decides a promotion: from the request and the repository's state to the files to write.

Everything here is pure. `decide` takes one commit (a Tip); when a push loses a race, the same
intent is decided again at the next commit, instead of replaying a patch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from k8s_ucp.errors import UsageError, command_line
from k8s_ucp.gitops.manifests.image_edit import NO_PIN, Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion import order as order_of
from k8s_ucp.gitops.promotion.gates import ENVIRONMENTS_FILE, differing, earlier_environment
from k8s_ucp.gitops.promotion.message import Change, PromotionNote, are_some, change_words
from k8s_ucp.gitops.promotion.order import UNORDERED, Mark, Order
from k8s_ucp.gitops.promotion.overlay import (
    EditedTip,
    Overlay,
    Tip,
    Writes,
    config_file,
    nearest,
    nothing_found,
    overlay_folder,
    read_overlay,
    unnamed,
    written,
)
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, ChartKey, ChartMissing, content_of
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder, decoded
from k8s_ucp.gitops.promotion.targets.helm import CHART_FILE
from k8s_ucp.gitops.promotion.targets.kinds import ChartFiles, Target, on_hub

Status = Literal["promoted", "unchanged", "superseded", "pr", "held", "gated", "conflict"]


@dataclass(frozen=True)
class Intent:
    """A requested promotion. Exactly one of pin, source, images and charts sets the version."""

    app: str
    env: str
    pin: Pin = NO_PIN
    source: str = ""
    """The environment whose versions are copied (`--from`)."""
    images: Mapping[str, Pin] = field(default_factory=dict)
    charts: Mapping[str, Pin] = field(default_factory=dict)
    """Versions of charts by name; "" is the only chart."""
    contents: Mapping[ChartKey, ChartContent] = field(default_factory=dict)
    """Charts that were fetched for this intent and others."""
    order: Order = UNORDERED
    expect: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
    """Versions by image as displayed to the user: any other version is a conflict."""
    require_env: str = ""
    force: bool = False


@dataclass(frozen=True)
class Decision:
    """The result of one intent at one commit.

    writes: new content by path; empty unless the status is promoted, or unchanged with a sequence
    to record. reason and next: messages for the user if the status isn't promoted.
    """

    status: Status
    note: PromotionNote
    asked: tuple[Change, ...] = ()
    """The requested changes, whether they landed or not."""
    writes: Writes = field(default_factory=dict)
    reason: str = ""
    next: str = ""
    required: tuple[tuple[str, Mapping[str, Pin]], ...] = ()
    """What other environments must run: (environment, versions by the image name in pods)."""
    locations: tuple[str, ...] = ()
    """Where the versions are, if not in a kustomization's images."""
    kept: tuple[Change, ...] = ()
    """Of the note's changes, those that an open pull request already proposed, for other images."""
    dropped: tuple[Change, ...] = ()
    """Changes that a pull request proposed and no longer proposes."""
    held: tuple[str, ...] = ()
    """Versions that a rollback puts on hold."""


def decide(tip: Tip, intent: Intent, base: Tip | None = None) -> Decision:
    """What to write for an intent. Raises UsageError, NotEditable, UcpError.

    base: where gates look, if `tip` contains changes that have not landed yet.
    """
    overlay = read_overlay(tip, intent.app, intent.env)
    requested = {
        name: _readable(overlay.target(name), pin)
        for name, pin in _requested(base or tip, intent, overlay).items()
    }
    return _decide(base or tip, intent, overlay, _weigh(overlay, intent, requested))


@dataclass(frozen=True)
class _Weighed:
    """The changes of an intent, weighed against what landed before."""

    asked: tuple[Change, ...]
    passing: tuple[Change, ...]
    """Those that may land; old and new are equal if only their order has to be recorded."""
    marks: Mapping[str, Mark]
    """The overlay's marks, with those of the passing changes."""
    verdicts: Sequence[order_of.Verdict]


def _weigh(overlay: Overlay, intent: Intent, requested: Mapping[str, Pin]) -> _Weighed:
    asked = overlay.changes(requested)
    marks = dict(overlay.marks)
    passing: list[Change] = []
    verdicts: list[order_of.Verdict] = []
    for change in asked:
        mark = marks.get(change.image, Mark())
        verdict = order_of.weigh(mark, intent.order, change.old, change.new, force=intent.force)
        if verdict.kind != "passes" and change.old == change.new:
            continue
        verdicts.append(verdict)
        if verdict.kind == "passes":
            passing.append(change)
            if verdict.mark != Mark():
                marks[change.image] = verdict.mark
    return _Weighed(asked, tuple(passing), marks, verdicts)


def _readable(target: Target, pin: Pin) -> Pin:
    """The version as it is read back: in chart values, a digest takes precedence over the tag."""
    return Pin(digest=pin.digest) if target.has_default and pin.digest else pin


def decide_all(tip: Tip, intents: Sequence[Intent]) -> list[Decision]:
    """Decide a batch, which lands in one commit or not at all; each intent sees earlier ones."""
    decisions: list[Decision] = []
    seen = EditedTip(tip, {})
    for intent in intents:
        decision = decide(seen, intent, tip)
        seen = EditedTip(tip, {**seen.written, **decision.writes})
        decisions.append(decision)
    return all_or_none(decisions)


def all_or_none(decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions of a batch; if one of them is refused, none writes anything."""
    stopped = next((each for each in decisions if each.status in REFUSALS), None)
    return [_withdrawn(each, stopped) for each in decisions] if stopped else list(decisions)


REFUSALS = ("held", "gated", "conflict")
"""Statuses with which nothing lands and the command exits with code 1."""


def _decide(base: Tip, intent: Intent, overlay: Overlay, weighed: _Weighed) -> Decision:
    moved = tuple(change for change in weighed.passing if change.old != change.new)
    note = PromotionNote(
        "promote",
        intent.app,
        intent.env,
        moved,
        intent.order.sequence,
        several=are_some(moved, overlay.pins),
    )
    subject = f"{intent.app} in {intent.env}"

    def refused(status: Status, reason: str, next: str = "") -> Decision:
        return Decision(status, note, weighed.asked, reason=reason, next=next)

    held = next((each for each in weighed.verdicts if each.kind == "held"), None)
    if held:
        release = f"ucp rollback {intent.app} --env {intent.env} --release-hold"
        until = f" until {held.ended_by}" if held.ended_by else ""
        return refused("held", f"{subject} was {held.reason}{until}", release)
    older = next((each for each in weighed.verdicts if each.kind == "superseded"), None)
    if older and not weighed.passing:
        return refused("superseded", f"{subject} is newer: {older.reason}")
    meanwhile = seen_otherwise({each.image: each.old for each in moved}, intent.seen)
    if meanwhile:
        return refused("conflict", f"{subject} {meanwhile}", "look at it, then promote again")
    conflict = _conflict(intent, moved)
    if conflict:
        review = f"ucp history {intent.app} --env {intent.env}"
        return refused("conflict", f"{subject} {conflict}", review)
    required = _required(base, intent) if moved else ""
    lacking = _lacking(base, intent, overlay, required, moved)
    if lacking:
        reason = f"{required} does not have the tag yet: {lacking[0]}"
        return refused("gated", reason, _first(intent, required))
    pins = {each.image: each.new for each in moved}
    contents = _contents(base, intent, overlay, required, pins)
    writes = written(overlay, pins, weighed.marks, contents)
    if not moved:
        note = replace(note, kind="mark")
        same = [change for change in weighed.asked if change.old == change.new]
        version = change_words(same, several=are_some(same, overlay.pins)) or "it"
        return Decision(
            "unchanged", note, weighed.asked, writes, f"{subject} already has {version}"
        )
    running = _running(base, intent, overlay, required, moved)
    locations = overlay.location_texts(pins)
    return Decision("promoted", note, weighed.asked, writes, required=running, locations=locations)


def _first(intent: Intent, required: str) -> str:
    """The promotion that must land before a gated one."""
    if intent.source == required:
        return f"promote {intent.app} to {required} first"
    order = ["--semver"] if intent.order.semver else []
    if intent.order.sequence is not None and not intent.order.source:
        order = ["--sequence", str(intent.order.sequence)]
    return _command(intent, required, [*_version_flags(intent), *order])


def _command(intent: Intent, env: str, flags: Sequence[str]) -> str:
    """A promotion of the same app that can be pasted into a shell."""
    return command_line("ucp", "promote", intent.app, "--env", env, *flags)


def _version_flags(intent: Intent) -> list[str]:
    """The flags that set the version of an intent."""
    if intent.source:
        return ["--from", intent.source]
    if intent.pin:
        return ["--tag" if intent.pin.tag else "--digest", str(intent.pin)]
    flags = [["--image", f"{name}={pin}"] for name, pin in intent.images.items()]
    flags += [["--chart-version", _named(name, pin)] for name, pin in intent.charts.items()]
    return [word for each in flags for word in each]


def _named(chart: str, version: Pin) -> str:
    return f"{chart}={version}" if chart else str(version)


def seen_otherwise(pins: Mapping[str, Pin], seen: Mapping[str, str]) -> str:
    """How the versions differ from those that the user saw; "" if they don't."""
    for name, pin in pins.items():
        if name in seen and seen[name] != str(pin):
            return f"changed to {pin or 'no tag'} in the meantime"
    return ""


def _conflict(intent: Intent, moved: Sequence[Change]) -> str:
    if not intent.expect:
        return ""
    for change in moved:
        if intent.expect not in (change.old.tag, change.old.digest, str(change.old)):
            return f"has {change.old or 'no tag'}, not the expected {intent.expect}"
    return ""


def _required(base: Tip, intent: Intent) -> str:
    """The environment that must have the version first; "" if none. Raises UsageError."""
    required = intent.require_env
    if not required:
        content = base.read(ENVIRONMENTS_FILE)
        text = None if content is None else decoded(content, ENVIRONMENTS_FILE)
        envs = base.folders(f"apps/{intent.app}/overlays")
        required = earlier_environment(text, intent.env, envs)
    if required == intent.env:
        raise UsageError(
            f"--require-env {intent.env} is also the target environment",
            next="choose another environment for --require-env",
        )
    return required


def _lacking(
    base: Tip, intent: Intent, overlay: Overlay, required: str, moved: Sequence[Change]
) -> list[str]:
    """Changes that the required environment lacks, as messages."""
    if not required:
        return []
    elsewhere = read_overlay(base, intent.app, required)
    deployed = {
        each.image: found.pin
        for each in moved
        if (found := elsewhere.counterpart(overlay.target(each.image)))
    }
    return differing({each.image: each.new for each in moved}, deployed)


def _running(
    base: Tip, intent: Intent, overlay: Overlay, required: str, moved: Sequence[Change]
) -> tuple[tuple[str, Mapping[str, Pin]], ...]:
    if not required:
        return ()
    elsewhere = read_overlay(base, intent.app, required)
    pins = {}
    for change in moved:
        found = elsewhere.counterpart(overlay.target(change.image))
        if found and found.kind == "image":
            pins[found.image] = change.new
    return ((required, pins),)


def _requested(tip: Tip, intent: Intent, overlay: Overlay) -> dict[str, Pin]:
    """The requested version of each image, by its name in the overlay."""
    if intent.charts:
        return {_chart(overlay, intent, name): pin for name, pin in intent.charts.items()}
    if intent.images:
        return {_find(overlay, name): pin for name, pin in intent.images.items()}
    if intent.source:
        if intent.source == intent.env:
            raise UsageError(
                f"--from {intent.source} is also the target environment",
                next="choose another environment for --from",
            )
        source = read_overlay(tip, intent.app, intent.source)
        shared = {
            target.name: found.pin
            for target in overlay.targets
            if (found := source.counterpart(target)) and found.pin
        }
        if not shared:
            raise NotEditable(
                f"{source.path} and {overlay.path} have no image in common",
                next="use the same images in both, or set --image NAME=TAG",
            )
        return shared
    images = [target for target in overlay.targets if target.kind == "image"]
    if not images:
        raise nothing_found(tip, intent.app, overlay.path)
    own = [each for each in images if intent.app in (_last(each.image), _last(each.name))]
    if len(own) == 1:
        # Among images of sidecars or databases, the one named like the app is meant.
        return {own[0].name: intent.pin}
    if len(images) != 1:
        names = ", ".join(each.name for each in images)
        raise UsageError(
            f"{overlay.path} has {len(images)} images ({names}); the image for {intent.pin} is not "
            "specified",
            next=_choose(intent, images),
        )
    return {images[0].name: intent.pin}


def _last(image: str) -> str:
    """The last component of an image's name, without a registry's port or a version."""
    return image.rpartition("/")[2].partition(":")[0].partition("@")[0]


def _choose(intent: Intent, images: Sequence[Target]) -> str:
    """Advice on how to select one of several images.

    The example is one of those that share a repository with most others: a tag to promote is
    hardly that of a lone sidecar or database.
    """
    shared = Counter(each.image.rpartition("/")[0] for each in images if "/" in each.image)
    example = max(images, key=lambda each: shared[each.image.rpartition("/")[0]])
    advice = _command(intent, intent.env, ["--image", f"{example.name}={intent.pin}"])
    lines = [image.line for image in images if image.line]
    return f"{advice}; {_naming(intent.app, lines)}" if lines else advice


def _naming(app: str, lines: Sequence[str]) -> str:
    return f"or name the one that is meant in {config_file(app)}: targets: [{lines[0]}]" + "".join(
        f" or [{line}]" for line in lines[1:3]
    )


def _chart(overlay: Overlay, intent: Intent, typed: str) -> str:
    """The name of the selected chart; "" selects the only one."""
    charts = [target for target in overlay.targets if target.kind == "chart"]
    names = [target.short for target in charts]
    if typed in names:
        return charts[names.index(typed)].name
    if typed or not charts:
        problem = f"no chart {typed}" if typed else "no chart whose version can be promoted"
        raise UsageError(f"{overlay.path} has {problem}", next=nearest(typed, names))
    if len(charts) > 1:
        choice = ["--chart-version", f"{names[0]}={intent.charts[typed]}"]
        raise UsageError(
            f"{overlay.path} has {len(charts)} charts: {', '.join(names)}",
            next=_command(intent, intent.env, choice),
        )
    return charts[0].name


def _contents(
    base: Tip, intent: Intent, overlay: Overlay, required: str, pins: Mapping[str, Pin]
) -> dict[str, ChartContent]:
    """Files of the charts to promote that are copied to the folder. Raises ChartMissing.

    They come from the environment to promote from, or from the one that must have the version
    first, else from any other environment with this version, else from the fetched charts.
    """
    found = {}
    for name, pin in pins.items():
        target = overlay.target(name)
        (location, *_) = target.locations
        if not isinstance(location, ChartFiles):
            continue
        envs = [each for each in (intent.source, required) if each]
        envs += [each for each in base.folders(f"apps/{intent.app}/overlays") if each not in envs]
        for env in envs:
            folder = EnvironmentFolder(base, overlay_folder(intent.app, env))
            if env != intent.env and folder.text(CHART_FILE) is not None:
                content = content_of(folder, env)
                if content.version == pin.tag:
                    found[name] = content
                    break
        else:
            key = (intent.app, target.short, pin.tag)
            if key not in intent.contents:
                raise ChartMissing(*key, location.repo)
            found[name] = intent.contents[key]
    return found


def _find(overlay: Overlay, typed: str) -> str:
    """The image's name in the overlay, from that name or from the image name in pods.

    Docker Hub's images are also found by their other spellings: redis, docker.io/library/redis.
    """
    if any(target.name == typed for target in overlay.targets):
        return typed
    images = [each for each in overlay.targets if each.kind == "image"]
    found = [each for each in overlay.targets if typed in (each.image, each.way())]
    found = found or [each for each in images if on_hub(each.image) == on_hub(typed)]
    if len(found) == 1:
        return found[0].name
    if found:
        raise UsageError(
            f"{overlay.path} has {typed} in {len(found)} places: "
            + "; ".join(each.location_text for each in found),
            next=_naming(overlay.app, [each.line for each in found]).removeprefix("or "),
        )
    known = [each.name for each in images]
    same = (f"{{image: {typed}, ", f"{{image: {on_hub(typed)}, ")
    lines = [each for each in unnamed(overlay.files, overlay.env) if each.startswith(same)]
    path = f"targets: [{next(iter(lines), f'{{image: {typed}, path: image.tag}}')}]"
    raise UsageError(
        f"{overlay.path} has no image {typed}",
        next=_nearest_image(typed, known)
        if known
        else f"name it in {config_file(overlay.app)}: {path}",
    )


def _nearest_image(typed: str, known: Sequence[str]) -> str:
    """A hint for an unknown image: one with this word in its last component, or a similar one."""
    same = (each for each in known if _last(each) == _last(typed))
    alike = (each for each in known if typed in _last(each))
    close = next(chain(same, alike), "")
    return f"did you mean {close}?" if close else nearest(typed, known)


def _withdrawn(decision: Decision, stopped: Decision) -> Decision:
    """A decision of a batch that doesn't land because another one was refused."""
    if decision.status in REFUSALS:
        return decision
    where = f"{stopped.note.app} in {stopped.note.env}"
    return replace(
        decision,
        status=stopped.status,
        writes={},
        reason=f"not landed: {where} stops the batch ({stopped.reason})",
        next=stopped.next,
    )
