"""Versions of all apps in all environments, for the board.

Everything is read from one commit of the app repository in a few git calls, however many apps there
are. The last changes come from the log; for a later commit, only the added part is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.gates import ENVIRONMENTS_FILE, earlier_environment
from k8s_ucp.gitops.promotion.history import HistoryEvent, latest_events
from k8s_ucp.gitops.promotion.message import Change
from k8s_ucp.gitops.promotion.order import MARKS_FILE
from k8s_ucp.gitops.promotion.overlay import Overlay, config_file, read_overlay
from k8s_ucp.gitops.promotion.targets.find import is_read

AppEnvironment = tuple[str, str]
"""(app, environment)"""


@dataclass(frozen=True)
class Deployed:
    """One app in one environment, according to the repository."""

    app: str
    env: str
    pins: Mapping[str, Pin] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    """Tags or digests that were rolled back and are blocked."""
    source: str = ""
    """The environment from which its tags are promoted."""
    newer: tuple[Change, ...] = ()
    """Versions that the source has and this environment doesn't."""
    changed: HistoryEvent | None = None
    """The change that introduced the current pins."""
    problem: str = ""
    """Why its overlay can't be read."""


@dataclass(frozen=True)
class Overview:
    """The versions of one commit."""

    commit: str = ""
    deployed: Mapping[AppEnvironment, Deployed] = field(default_factory=dict)
    events: Mapping[AppEnvironment, HistoryEvent] = field(default_factory=dict)


def overview(repository: Repository, commit: str, before: Overview | None = None) -> Overview:
    """The versions of a commit. before: of an earlier commit, whose log need not be read again."""
    if before is not None and before.commit == commit:
        return before
    since = before.commit if before and _is_ancestor(repository, before.commit, commit) else ""
    known = dict(before.events) if before and since else {}
    events = {**known, **latest_events(repository, commit, since=since)}
    files = _Files(repository, commit)
    overlays: dict[AppEnvironment, Overlay] = {}
    found: dict[AppEnvironment, Deployed] = {}
    for app, env in files.app_environments():
        try:
            overlays[app, env] = read_overlay(files, app, env)
            found[app, env] = _deployed(files, overlays[app, env], events.get((app, env)))
        except UcpError as error:
            found[app, env] = Deployed(app, env, problem=error.message)
    return Overview(
        commit,
        {key: replace(each, newer=_newer(each, overlays)) for key, each in found.items()},
        events,
    )


def _deployed(files: _Files, overlay: Overlay, changed: HistoryEvent | None) -> Deployed:
    held = dict.fromkeys(each for mark in overlay.marks.values() for each in mark.held)
    source = files.source_of(overlay.app, overlay.env)
    return Deployed(
        overlay.app, overlay.env, overlay.pins, tuple(held), source=source, changed=changed
    )


def _newer(each: Deployed, overlays: Mapping[AppEnvironment, Overlay]) -> tuple[Change, ...]:
    """What a promotion from the source environment would change."""
    source = overlays.get((each.app, each.source))
    if source is None:
        return ()
    return tuple(
        Change(name, each.pins[name], pin)
        for name, pin in source.pins.items()
        if pin and name in each.pins and each.pins[name] != pin
    )


def _is_ancestor(repository: Repository, commit: str, tip: str) -> bool:
    if not repository.resolve(commit):
        return False
    return repository.contains(tip, commit)


class _Files:
    """The small files that contain versions, with the interface of a Tip."""

    def __init__(self, repository: Repository, commit: str) -> None:
        listing = {
            path: entry
            for path, entry in repository.listing(commit).items()
            if entry.mode.startswith("100")
            and (path == ENVIRONMENTS_FILE or _is_overlay_file(path) or _is_config(path))
        }
        contents = repository.contents(entry.id for entry in listing.values())
        self._files = {path: contents[entry.id] for path, entry in listing.items()}
        environments = self._files.get(ENVIRONMENTS_FILE)
        self._environments = (environments or b"").decode("utf-8", "replace")
        self._envs: dict[str, set[str]] = {}
        for app, env in self.app_environments():
            self._envs.setdefault(app, set()).add(env)
        self._sources: dict[tuple[str, frozenset[str]], str] = {}

    def app_environments(self) -> list[AppEnvironment]:
        paths = [path.split("/") for path in self._files if _is_overlay_file(path)]
        return sorted({(path[1], path[3]) for path in paths})

    def source_of(self, app: str, env: str) -> str:
        """The environment from which an app's `env` is promoted. Raises NotEditable."""
        envs = frozenset(self._envs[app])
        if (env, envs) not in self._sources:
            self._sources[env, envs] = earlier_environment(self._environments, env, envs)
        return self._sources[env, envs]

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def files(self, path: str) -> list[str]:
        inside = path + "/"
        return sorted(each[len(inside) :] for each in self._files if each.startswith(inside))

    def folders(self, path: str) -> list[str]:  # noqa: ARG002 (a Tip has it)
        """Empty: only used for messages about missing files."""
        return []


def _is_overlay_file(path: str) -> bool:
    """Whether it is a file of an overlay that contains versions."""
    parts = path.split("/", 4)
    if len(parts) < 5 or (parts[0], parts[2]) != ("apps", "overlays"):
        return False
    return parts[4] == MARKS_FILE or is_read(parts[4])


def _is_config(path: str) -> bool:
    """Whether it is a file that says what is promoted of an app."""
    parts = path.split("/")
    return len(parts) == 3 and path == config_file(parts[1])
