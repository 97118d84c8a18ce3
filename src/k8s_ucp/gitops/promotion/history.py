"""Reads the history of promotions from the commits that changed an app's overlays."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.git.objects import Author, commit_time
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.message import Change, are_some, read_trailers
from k8s_ucp.gitops.promotion.order import MARKS_FILE
from k8s_ucp.gitops.promotion.overlay import Overlay, Tip, overlay_folder, read_overlay
from k8s_ucp.gitops.promotion.rollback import PinsAtCommit
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, content_of
from k8s_ucp.gitops.promotion.targets.find import is_read
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.kinds import CHART, ChartFiles
from k8s_ucp.gitops.promotion.tip import GitTip


@dataclass(frozen=True)
class HistoryEvent:
    """A commit that changed versions or the hold of one overlay.

    kind: promote, rollback, hold, release or edit.
    """

    commit: str
    time: int
    """Seconds since the epoch."""
    author: Author
    env: str
    kind: str
    changes: tuple[Change, ...]
    sequence: int | None
    run: str
    several: bool = False
    """The overlay also has other images or charts."""


@dataclass(frozen=True)
class _Touch:
    """A commit and the overlay files that it changed: {path: blob after it, "" if deleted}."""

    commit: str
    time: int
    author: Author
    message: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class _State:
    """The versions in an overlay before and after a commit that touched it."""

    touch: _Touch
    app: str
    env: str
    before: Mapping[str, Pin]
    after: Mapping[str, Pin]

    def event(self, *, holds: bool = False) -> HistoryEvent | None:
        """The version changes of the commit; None if there are none.

        holds: also a hold that was set or released, with the versions that are there.
        """
        changes = tuple(
            Change(name, self.before.get(name, Pin()), pin)
            for name, pin in self.after.items()
            if (pin or self.before.get(name)) and self.before.get(name) != pin
        )
        if not (changes or holds):
            return None
        entries = {(each.app, each.env): each for each in read_trailers(self.touch.message)}
        entry = entries.get((self.app, self.env))
        if not changes:
            if entry is None or entry.kind not in ("hold", "release"):
                return None
            # `to` of the newest event is what the environment has, also after these.
            changes = tuple(Change(n, Pin(), pin) for n, pin in self.after.items() if pin)
        return HistoryEvent(
            commit=self.touch.commit,
            time=self.touch.time,
            author=self.touch.author,
            env=self.env,
            kind=entry.kind if entry else "edit",
            changes=changes,
            sequence=entry.sequence if entry else None,
            run=entry.run if entry else "",
            several=are_some(changes, self.after) or _is_chart_beside_images(changes, self.after),
        )


def events(repository: Repository, tip: str, app: str, env: str = "") -> list[HistoryEvent]:
    """Changes of an app's versions and holds, newest first; env "" means all environments."""
    states = _states(repository, tip, _below(app, env))
    return [event for state in states if (event := state.event(holds=True))]


def latest_events(
    repository: Repository, tip: str, *, since: str = ""
) -> dict[tuple[str, str], HistoryEvent]:
    """The newest change of every app in every environment, after the commit `since`."""
    found: dict[tuple[str, str], HistoryEvent] = {}
    for state in _states(repository, tip, "apps", since):
        if (state.app, state.env) not in found and (event := state.event()):
            found[state.app, state.env] = event
    return found


def pasts(repository: Repository, tip: str, app: str, env: str) -> list[PinsAtCommit]:
    """The overlay's versions at each commit that touched it, newest first."""
    return [
        PinsAtCommit(state.touch.commit, state.after)
        for state in _states(repository, tip, _below(app, env))
        if state.after
    ]


def past_at(repository: Repository, tip: str, app: str, env: str, name: str) -> PinsAtCommit | None:
    """The overlay's versions at a commit of the branch; None if `name` isn't one."""
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", name):
        return None
    try:
        commit = repository.resolve(name)
    except GitFailed:
        # Ambiguous: several commit ids begin with it.
        return None
    if not commit or not repository.contains(tip, commit):
        return None
    pins = _pins(GitTip(repository, commit, [app]), app, env)
    return PinsAtCommit(commit, pins) if pins else None


def charts_in(
    repository: Repository, overlay: Overlay, pins: Mapping[str, Pin], known: Sequence[PinsAtCommit]
) -> dict[str, ChartContent]:
    """Files of the charts to restore that are copied to the overlay's folder, from its history.

    known: newest first.
    """
    found = {}
    for name, pin in pins.items():
        if isinstance(overlay.target(name).locations[0], ChartFiles):
            past = next(each for each in known if each.pins.get(name) == pin)
            tip = GitTip(repository, past.commit, [overlay.app])
            found[name] = content_of(EnvironmentFolder(tip, overlay.folder), overlay.env)
    return found


@dataclass
class _Replayed:
    """Overlays rebuilt from history, file by file.

    configs: blobs of the apps' current `.promotion.yaml`, which are also used for the past.
    """

    repository: Repository
    configs: Mapping[str, str]
    contents: dict[str, bytes]
    blobs: dict[str, str]

    def read(self, path: str) -> bytes | None:
        id = self.configs.get(path) or self.blobs.get(path)
        if id is not None and id not in self.contents:
            self.contents.update(self.repository.contents([id]))
        return None if id is None else self.contents[id]

    def files(self, path: str) -> list[str]:
        inside = path + "/"
        return sorted(each[len(inside) :] for each in self.blobs if each.startswith(inside))

    def folders(self, path: str) -> list[str]:
        return sorted({each.split("/")[0] for each in self.files(path) if "/" in each})


def _is_chart_beside_images(changes: Sequence[Change], names: Iterable[str]) -> bool:
    """In a list of changes, a chart's version could be mistaken for an image's tag."""
    charts = all(each.image.startswith(CHART) for each in changes)
    return charts and not all(name.startswith(CHART) for name in names)


def _below(app: str, env: str) -> str:
    return overlay_folder(app, env) if env else f"apps/{app}/overlays"


def _states(repository: Repository, tip: str, folder: str, since: str = "") -> list[_State]:
    """The versions before and after each commit that touched overlays in a folder, newest first."""
    touches = list(_touches(repository, f"{since}..{tip}" if since else tip, folder))
    if not touches:
        return []
    top = "/".join(folder.split("/")[:2])
    configs = {
        path: entry.id
        for path, entry in repository.listing(tip, top).items()
        if path.count("/") == 2 and path.endswith(f"/{MARKS_FILE}") and entry.mode[:3] == "100"
    }
    entries = repository.listing(since, folder) if since else {}
    blobs = {
        path: entry.id
        for path, entry in entries.items()
        if _is_in_overlay(path) and entry.mode.startswith("100")
    }
    files = [item for touch in touches for item in touch.files.items()]
    wanted = {id for path, id in files if id and is_read(path.split("/", 4)[4])}
    contents = repository.contents([*wanted, *configs.values()])
    replayed = _Replayed(repository, configs, contents, blobs)
    last: dict[tuple[str, str], Mapping[str, Pin]] = {}
    states = []
    for touch in reversed(touches):
        overlays = dict.fromkeys((path.split("/")[1], path.split("/")[3]) for path in touch.files)
        if since:
            for overlay in overlays:
                last.setdefault(overlay, _pins(replayed, *overlay))
        for path, id in touch.files.items():
            if path.endswith(f"/{MARKS_FILE}"):
                continue  # order and holds: no version is read from it
            if id:
                replayed.blobs[path] = id
            else:
                replayed.blobs.pop(path, None)
        for app, env in reversed(overlays):
            pins = _pins(replayed, app, env)
            states.append(_State(touch, app, env, last.get((app, env), {}), pins))
            last[app, env] = pins
    return states[::-1]


def _is_in_overlay(path: str) -> bool:
    return path.count("/") > 3 and path.split("/")[2] == "overlays"


def _pins(tip: Tip, app: str, env: str) -> Mapping[str, Pin]:
    """The versions in an overlay; empty if it could not be promoted to at that time."""
    try:
        return read_overlay(tip, app, env).pins
    except UcpError:
        return {}


def _touches(repository: Repository, tip: str, folder: str) -> Iterator[_Touch]:
    """Commits on the first-parent line that touched overlay files below `folder`."""
    # Commit messages can contain anything, so the separators are random.
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
            found = re.fullmatch(r"\n?:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*", head)
            path = next(parts, "")
            if found and _is_in_overlay(path):
                files[path] = found[2] if found[1].startswith("100") else ""
        if files:
            yield _Touch(commit, commit_time(when), Author(name, email), message, files)
