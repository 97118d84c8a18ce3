"""What was promoted when, read from the commits that touched an app's overlays."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from k8s_ucp.git.failures import GitFailed
from k8s_ucp.git.objects import Author
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.image_edit import Image, Pin, read_images
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.message import Change, NoteTrailers, read_trailers
from k8s_ucp.gitops.promotion.overlay import KUSTOMIZATIONS, overlay_folder
from k8s_ucp.gitops.promotion.rollback import PinsAtCommit


@dataclass(frozen=True)
class HistoryEvent:
    """A commit that changed the pins of one overlay. kind: promote, rollback, release or edit."""

    commit: str
    time: int
    """Seconds since the epoch."""
    author: Author
    env: str
    kind: str
    changes: tuple[Change, ...]
    sequence: int | None
    run: str


@dataclass(frozen=True)
class _Touch:
    """A commit and the kustomizations it touched: {path: (blob before, blob after)}."""

    commit: str
    time: int
    author: Author
    message: str
    files: Mapping[str, tuple[str, str]]


def events(repository: Repository, tip: str, app: str, env: str = "") -> list[HistoryEvent]:
    """Changes of an app's pins, newest first; env "" is every environment."""
    folder = overlay_folder(app, env) if env else f"apps/{app}/overlays"
    touches = list(_touches(repository, tip, folder))
    ids = [id for touch in touches for pair in touch.files.values() for id in pair]
    contents = repository.contents(id for id in ids if _exists(id))
    found = []
    for touch in touches:
        entries = {each.env: each for each in read_trailers(touch.message) if each.app == app}
        for path, (before, after) in touch.files.items():
            name = path.split("/")[3]
            changes = _changes(contents.get(before, b""), contents.get(after, b""), path)
            if changes:
                found.append(_event(touch, name, changes, entries.get(name)))
    return found


def latest_events(
    repository: Repository, tip: str, *, since: str = ""
) -> dict[tuple[str, str], HistoryEvent]:
    """The newest change of each app in each environment, after the commit `since`: for all apps."""
    touches = list(_touches(repository, f"{since}..{tip}" if since else tip, "apps"))
    ids = [id for touch in touches for pair in touch.files.values() for id in pair]
    contents = repository.contents(id for id in ids if _exists(id))
    found: dict[tuple[str, str], HistoryEvent] = {}
    for touch in touches:
        entries = {(each.app, each.env): each for each in read_trailers(touch.message)}
        for path, (before, after) in touch.files.items():
            _, app, folder, env, _ = path.split("/")
            if folder != "overlays" or (app, env) in found:
                continue
            changes = _changes(contents.get(before, b""), contents.get(after, b""), path)
            if changes:
                found[app, env] = _event(touch, env, changes, entries.get((app, env)))
    return found


def pasts(repository: Repository, tip: str, app: str, env: str) -> list[PinsAtCommit]:
    """The overlay's pins at each commit that changed them, newest first."""
    touches = list(_touches(repository, tip, overlay_folder(app, env)))
    contents = repository.contents(
        after for touch in touches for _, after in touch.files.values() if _exists(after)
    )
    return [
        PinsAtCommit(touch.commit, {image.name: image.pin for image in images})
        for touch in touches
        for path, (_, after) in touch.files.items()
        if (images := _images(contents.get(after, b""), path))
    ]


def past_at(repository: Repository, tip: str, app: str, env: str, name: str) -> PinsAtCommit | None:
    """The overlay's pins at a commit of the branch; None where `name` is no such commit."""
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", name):
        return None
    try:
        commit = repository.resolve(name)
    except GitFailed:
        # Too short: several commits begin with it.
        return None
    if not commit or repository.git("rev-list", "--max-count=1", commit, "--not", tip).strip():
        return None
    listing = repository.listing(commit, overlay_folder(app, env))
    for path, entry in listing.items():
        if path.rpartition("/")[2] in KUSTOMIZATIONS and entry.mode.startswith("100"):
            images = _images(repository.contents([entry.id])[entry.id], path)
            return PinsAtCommit(commit, {image.name: image.pin for image in images})
    return None


def _event(
    touch: _Touch, env: str, changes: tuple[Change, ...], entry: NoteTrailers | None
) -> HistoryEvent:
    return HistoryEvent(
        commit=touch.commit,
        time=touch.time,
        author=touch.author,
        env=env,
        kind=entry.kind if entry else "edit",
        changes=changes,
        sequence=entry.sequence if entry else None,
        run=entry.run if entry else "",
    )


def _changes(before: bytes, after: bytes, path: str) -> tuple[Change, ...]:
    old = {image.name: image.pin for image in _images(before, path)}
    new = {image.name: image.pin for image in _images(after, path)}
    return tuple(
        Change(name, old.get(name, Pin()), pin)
        for name, pin in new.items()
        if pin and old.get(name) != pin
    )


def _images(content: bytes, path: str) -> list[Image]:
    """Images of a version; none of one that was no kustomization then."""
    try:
        return read_images(content.decode("utf-8"), path)
    except (NotEditable, UnicodeDecodeError):
        return []


def _touches(repository: Repository, tip: str, folder: str) -> Iterator[_Touch]:
    """Commits on the first-parent line that touched a kustomization below `folder`."""
    # Messages may hold anything, so the separators are made up anew each time.
    start, field = uuid.uuid4().hex, uuid.uuid4().hex
    layout = start + field.join(["%H", "%an", "%ae", "%ct", "%B", ""])
    raw = repository.git(
        "log", "--first-parent", "-m", "--raw", "--no-abbrev", "--no-renames", "-z", "--no-color",
        "--no-show-signature", f"--format={layout}", "--end-of-options", tip, "--", folder,
    )  # fmt: skip
    for record in raw.decode("utf-8", "surrogateescape").split(start)[1:]:
        commit, name, email, when, message, rest = record.split(field)
        files = {}
        parts = iter(rest.strip("\0\n").split("\0"))
        for head in parts:
            found = re.fullmatch(r"\n?:\d+ \d+ ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*", head)
            path = next(parts, "")
            if found and path.rpartition("/")[2] in KUSTOMIZATIONS and path.count("/") == 4:
                files[path] = (found[1], found[2])
        if files:
            yield _Touch(commit, int(when), Author(name, email), message, files)


def _exists(id: str) -> bool:
    """git writes a missing side of a change as zeros."""
    return bool(id.strip("0"))
