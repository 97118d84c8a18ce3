"""Merges a new render into a repository that users commit to. Pure.

There are three versions of each file: `base`, the last render; `ours`, the repository's; `theirs`,
the new render. Files that the render did not change stay as they are in the repository; so do tags,
deleted files, and everything of environments and apps that the topology doesn't declare. If both
sides changed the same lines, the user must resolve the conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.git.objects import blob_id
from k8s_ucp.gitops.manifests.image_edit import read_images, set_pin
from k8s_ucp.gitops.manifests.yaml_text import first_map, maps
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.publish.list_merge import ItemConflict, merge_lists

_SHOWN_LINES = 40
_OVERLAY = re.compile(r"(?:apps/(?P<app>[^/]+)|clusters)/overlays/(?P<environment>[^/]+)/")
_APP = re.compile(r"apps/(?P<app>[^/]+)/")
_BASE = re.compile(r"apps/(?P<app>[^/]+)/base/")
_CHART = re.compile(r"apps/(?P<app>[^/]+)/overlays/(?P<environment>[^/]+)/Chart\.yaml")
_VERSION = re.compile(r"^version:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)
_TAGS = re.compile(r"^(  - name: (?P<image>.+)\n    newTag: )(?P<tag>.+)$", re.MULTILINE)
_README = "README.md"
_ENVIRONMENT_LISTS = ("clusters/kustomization.yaml", "environments.yaml")

MOVED = ("applications/protected.yaml", "applications/unprotected.yaml")
"""Files that older topologies have in the app repository; now they are in the core repository."""

TextMerge = Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
"""(base, ours, theirs) -> (text, whether it is free of conflicts)."""


@dataclass(frozen=True)
class Scope:
    """The environments and apps that the topology declares: the render only affects these."""

    environments: frozenset[str]
    apps: frozenset[str]


EMPTY_SCOPE = Scope(frozenset(), frozenset())


@dataclass(frozen=True)
class Choices:
    """Conflicting files for which the user chose a side."""

    ours: frozenset[str] = frozenset()
    theirs: frozenset[str] = frozenset()
    removed: Scope = EMPTY_SCOPE
    """Environments and apps to delete with all files in their folders."""


@dataclass(frozen=True)
class FileConflict:
    """A file that both sides changed. text: the conflicting parts, with both versions."""

    path: str
    text: str
    added: bool = False
    """The last render doesn't have the file."""


class MergeConflict(UcpError):
    """A repository and the new render changed the same lines. Nothing was written.

    conflicts: by the repository's name. edit: the render is of an edited ucp.yaml, which is only
    written once it is published: `ucp start` would render the one before.
    """

    def __init__(
        self, conflicts: Mapping[str, Iterable[FileConflict]], *, edit: bool = False
    ) -> None:
        self.conflicts = {name: tuple(found) for name, found in conflicts.items()}
        shown = "\n".join(
            f"\n{name}: {each.path}\n{each.text}"
            for name, found in self.conflicts.items()
            for each in found
        )
        super().__init__(
            f"conflict: the repository and the new render changed the same lines:\n{shown}",
            next=self._advise_on_edit() if edit else self._advise(),
        )

    def _advise(self) -> str:
        paths = self._paths(added=True) + self._paths(added=False)
        return (
            f"keep the repository's version: {_start('--ours', paths)}, or take the rendered "
            f"one: {_start('--theirs', paths)} (one of the flags for each file)"
        )

    def _advise_on_edit(self) -> str:
        advice = []
        if added := self._paths(added=True):
            advice.append(f"move or delete by a commit: {', '.join(added)}")
        if edited := self._paths(added=False):
            advice.append(
                f"replace the repository's edit with the last render: {_start('--theirs', edited)}"
            )
        return "; ".join(advice)

    def _paths(self, *, added: bool) -> list[str]:
        """The files, each with its repository: `core:PATH`."""
        return [
            f"{name}:{each.path}"
            for name, found in self.conflicts.items()
            for each in found
            if each.added is added
        ]


def _start(flag: str, paths: Iterable[str]) -> str:
    return command_line("ucp", "start", *(word for each in paths for word in (flag, each)))


@dataclass(frozen=True)
class Merged:
    """changes: what to commit on top of the repository's tip (None: delete the file)."""

    changes: dict[str, bytes | None] = field(default_factory=dict)
    conflicts: tuple[FileConflict, ...] = ()
    notes: tuple[str, ...] = ()
    """Parts of the render that were not applied, and how to apply them."""


def merge(
    base: Mapping[str, str],
    ours: Mapping[str, str],
    theirs: Mapping[str, bytes],
    *,
    scope: Scope,
    contents: Callable[[Iterable[str]], Mapping[str, bytes]],
    merge_text: TextMerge,
    choices: Choices | None = None,
) -> Merged:
    """Merge a new render into a repository.

    base, ours: {path: blob id}. theirs: {path: content}. contents: reads files by blob id.
    """
    choices = choices or Choices()
    length = len(next(iter(ours.values()), "")) or 40
    ids = {path: blob_id(content, length=length) for path, content in theirs.items()}
    folders = {folder for path in ours for folder in _folders(path)}
    left = {path for path in ours.keys() - theirs.keys() if _leaves(path, choices.removed)}
    kept, notes = _kept_charts(base, ours, theirs, contents, choices)
    changes: dict[str, bytes | None] = dict.fromkeys(left)
    conflicts: list[FileConflict] = []
    both = []
    for path in sorted((base.keys() | theirs.keys()) - left):
        action = _action(path, (base.get(path), ours.get(path), ids.get(path)), scope, choices)
        if action is _Action.KEEP or _is_of_chart(path, kept):
            continue
        if action is _Action.DELETE:
            changes[path] = None
        elif action is _Action.REFUSE_TO_DELETE:
            conflicts.append(FileConflict(path, f"  {_dropped(path)}"))
        elif action is _Action.MERGE:
            both.append(path)
        elif _in_the_way(path, ours, folders):
            text = "  a file and a folder of the same name"
            conflicts.append(FileConflict(path, text, added=path not in base))
        else:
            changes[path] = theirs[path]
    texts = contents(each[path] for path in both for each in (base, ours) if path in each)
    edited = _edited_bases(base, ours, ids)
    for path in both:
        old = texts[base[path]] if path in base else None
        overlay = _OVERLAY.match(path)
        if overlay and overlay["app"] in edited and _only_lists_images(old, theirs[path]):
            continue
        file = _Versions(path, old, texts[ours[path]], theirs[path])
        outcome = _merge_file(file, scope, merge_text, take_theirs=path in choices.theirs)
        if isinstance(outcome, FileConflict):
            # A conflict in a README of the user does not abort a start.
            if path != _README:
                conflicts.append(outcome)
        elif outcome != file.ours:
            changes[path] = outcome
    return Merged(changes, tuple(conflicts), tuple(notes))


class _Action(Enum):
    """What a merge does with a file of the repository."""

    KEEP = auto()
    DELETE = auto()
    REFUSE_TO_DELETE = auto()
    """The render no longer has it, but the repository has edited it."""
    ADD = auto()
    MERGE = auto()
    """Both have it; the contents decide."""


def _action(
    path: str, ids: tuple[str | None, str | None, str | None], scope: Scope, choices: Choices
) -> _Action:
    """Decide by the ids of its versions (base, ours, theirs) alone."""
    before, current, new = ids
    chosen = path in choices.theirs
    if new == current or path in choices.ours:
        return _Action.KEEP
    if new == before and not (chosen and new):
        return _Action.KEEP
    if new is None:
        if current is None or not _speaks_for(path, scope):
            return _Action.KEEP
        return _Action.DELETE if current == before or chosen else _Action.REFUSE_TO_DELETE
    if current is None:
        # A file that was deleted in the repository stays deleted.
        return _Action.ADD if before is None or chosen else _Action.KEEP
    if before or chosen or not _belongs_to_the_repository(path):
        return _Action.MERGE
    return _Action.KEEP


def _edited_bases(
    base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> set[str]:
    """Apps whose base was edited in the repository, and is the same in the new render."""
    found = {
        path: match["app"]
        for path in base.keys() | ours.keys() | theirs.keys()
        if (match := _BASE.match(path))
    }
    edited = {app for path, app in found.items() if base.get(path) != ours.get(path)}
    return edited - {app for path, app in found.items() if base.get(path) != theirs.get(path)}


def _only_lists_images(old: bytes | None, new: bytes) -> bool:
    """A render of an overlay differs from the last one by further images only.

    A newer ucp finds more images in the same files. Their versions are those of ucp.yaml's copy of
    the base: where the repository's base was edited, they may be older than what runs.
    """
    if old is None:
        return False
    try:
        before, after = first_map(old, "the last render"), first_map(new, "the render")
    except UsageError:
        return False
    listed = ({str(each.get("name")) for each in maps(one, "images")} for one in (before, after))
    known, named = listed
    return known < named and {**before, "images": None} == {**after, "images": None}


def _kept_charts(
    base: Mapping[str, str],
    ours: Mapping[str, str],
    theirs: Mapping[str, bytes],
    contents: Callable[[Iterable[str]], Mapping[str, bytes]],
    choices: Choices,
) -> tuple[set[str], list[str]]:
    """Folders of environments whose chart version differs from the render's, and notes on them.

    A promotion put that version there; merging its files with a third version would produce an
    inconsistent chart.
    """
    kept, notes = set(), []
    for path in sorted(base.keys() & ours.keys() & theirs.keys() - choices.theirs):
        found = _CHART.fullmatch(path)
        if not found or base[path] == ours[path]:
            continue
        texts = contents([base[path], ours[path]])
        before, current, new = map(_version, (texts[base[path]], texts[ours[path]], theirs[path]))
        if current in (before, new):
            continue
        kept.add(path.removesuffix("Chart.yaml"))
        if new != before:
            app, environment = found["app"], found["environment"]
            notes.append(
                f"{app} on {environment} keeps version {current} of its chart, as promoted; for "
                f"{new}: ucp promote {app} --env {environment} --chart-version {new}"
            )
    return kept, notes


def _version(chart: bytes) -> str:
    found = _VERSION.search(chart.decode("utf-8", "replace"))
    return found[1] if found else ""


def _is_of_chart(path: str, charts: Iterable[str]) -> bool:
    """The file belongs to one of these charts, and isn't the environment's own."""
    folder = next((each for each in charts if path.startswith(each)), None)
    if folder is None:
        return False
    own = (".argocd-source.yaml", f"values-{folder.split('/')[3]}.yaml")
    return path.removeprefix(folder) not in own


def _dropped(path: str) -> str:
    """Why an edited file conflicts with a render that no longer contains it."""
    if path in MOVED:
        return (
            "edited there, but ApplicationSets are now read from the core repository "
            "only: commit the edit to that file of the core repository, then `--ours "
            f"core:{path} --theirs apps:{path}`"
        )
    return "edited there, but removed in the render"


def _leaves(path: str, removed: Scope) -> bool:
    overlay, app = _OVERLAY.match(path), _APP.match(path)
    return bool(
        (overlay and overlay["environment"] in removed.environments)
        or (app and app["app"] in removed.apps)
    )


def _speaks_for(path: str, scope: Scope) -> bool:
    """The render may delete the file: its environment and its app are in the topology."""
    overlay, app = _OVERLAY.match(path), _APP.match(path)
    if overlay and overlay["environment"] not in scope.environments:
        return False
    return app is None or app["app"] in scope.apps


def _belongs_to_the_repository(path: str) -> bool:
    """If the file exists before its first render, it is the user's and is kept."""
    return path == _README or _OVERLAY.match(path) is not None


def _in_the_way(path: str, ours: Mapping[str, str], folders: set[str]) -> bool:
    """The repository has a file where this path needs a folder, or vice versa."""
    return path in folders or any(each in ours for each in _folders(path))


def _folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


@dataclass(frozen=True)
class _Versions:
    """A file that is in the repository and in the new render."""

    path: str
    base: bytes | None
    """None if the last render did not have it."""
    ours: bytes
    theirs: bytes


def _merge_file(
    file: _Versions, scope: Scope, merge_text: TextMerge, *, take_theirs: bool
) -> bytes | FileConflict:
    path, base, ours, theirs = file.path, file.base, file.ours, file.theirs
    if _OVERLAY.match(path):
        theirs = with_tags(theirs, ours if take_theirs else base or ours)
    if take_theirs:
        return theirs
    if base == theirs:
        return ours
    if base is not None and path.endswith(("kustomization.yaml", "environments.yaml")):
        merged = _merge_as_lists(path, (base, ours, theirs), scope, merge_text)
        if merged is not None:
            return merged
    if base == ours:
        return theirs
    text, clean = merge_text(base or b"", ours, theirs)
    return text if clean else FileConflict(path, _hunks(text), added=base is None)


def _merge_as_lists(
    path: str, versions: tuple[bytes, bytes, bytes], scope: Scope, merge_text: TextMerge
) -> bytes | None:
    """The merged file; None if merging its lists isn't possible. versions: base, ours, theirs."""

    def keep(item: str) -> bool:
        environment = item.removeprefix("overlays/").partition("=")[0]
        return path in _ENVIRONMENT_LISTS and environment not in scope.environments

    def skeleton(*texts: str) -> str:
        merged, clean = merge_text(*(each.encode() for each in texts))
        if not clean:
            raise ItemConflict(path)
        return merged.decode()

    try:
        texts = [each.decode() for each in versions]
        return merge_lists(*texts, keep=keep, merge_text=skeleton).encode()
    except (ItemConflict, UnicodeDecodeError):
        return None


def with_tags(text: bytes, other: bytes) -> bytes:
    """A rendered overlay with the tags and digests that another version of it has.

    Tags in the render's own layout are copied verbatim, so that the texts stay equal.
    """
    tags = {
        found["image"]: found["tag"]
        for found in _TAGS.finditer(other.decode("utf-8", "surrogateescape"))
    }
    copied = _TAGS.sub(
        lambda found: found[1] + tags.get(found["image"], found["tag"]),
        text.decode("utf-8", "surrogateescape"),
    )
    return _with_pins(copied, other).encode("utf-8", "surrogateescape")


def _with_pins(text: str, other: bytes) -> str:
    """Copy pins in any layout; overlays that can't be parsed are left as they are."""
    try:
        pins = {each.name: each.pin for each in read_images(other.decode("utf-8"), "it")}
        for each in read_images(text, "the render"):
            if pins.get(each.name):
                text = set_pin(text, each.name, pins[each.name], "the render")
    except (NotEditable, UnicodeDecodeError):
        pass
    return text


def _hunks(text: bytes) -> str:
    """The conflicting parts of a merged text, shortened."""
    lines = text.decode("utf-8", "replace").splitlines()
    shown: list[str] = []
    inside = False
    for line in lines:
        inside = inside or line.startswith("<<<<<<< ")
        if inside:
            shown.append(f"  {line}")
        inside = inside and not line.startswith(">>>>>>> ")
    if not shown:
        return "  both sides changed this binary file"
    more = len(shown) - _SHOWN_LINES
    return "\n".join(shown[:_SHOWN_LINES] + ([f"  ... {more} more lines"] if more > 0 else []))
