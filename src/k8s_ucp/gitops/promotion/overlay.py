"""Reads and rewrites an app's overlay for one environment at one commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from k8s_ucp.errors import LISTED, UsageError, some_of
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS, readable
from k8s_ucp.gitops.manifests.image_edit import NoImages, Pin, quoted
from k8s_ucp.gitops.manifests.images_and_ports import images_in
from k8s_ucp.gitops.manifests.reachable import FolderTree, kustomization, taken_in
from k8s_ucp.gitops.manifests.yaml_text import first_map, maps, part
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion import order as order_of
from k8s_ucp.gitops.promotion.message import Change
from k8s_ucp.gitops.promotion.order import MARKS_FILE, Mark
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, exchange
from k8s_ucp.gitops.promotion.targets.config import read_config
from k8s_ucp.gitops.promotion.targets.find import find_targets
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder, Files, decoded
from k8s_ucp.gitops.promotion.targets.helm import CHART_FILE, SETTINGS, read_values, unnamed_images
from k8s_ucp.gitops.promotion.targets.kinds import Target, write

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""A valid name of an app or environment: a single folder name; use fullmatch."""


_MOST_PROPOSED = 5
"""Maximum number of values that a message proposes as the place of an image's version."""


class OverlayMissing(UsageError):
    """The repository lacks an app, or its overlay for an environment.

    typed: the unknown name; meant: the most similar known one, or "".
    """

    def __init__(self, message: str, typed: str, known: Sequence[str]) -> None:
        self.typed, self.meant = typed, _similar(typed, known)
        super().__init__(
            f"{message}; available: {some_of(known, LISTED) or 'none'}",
            next=f"did you mean {self.meant}?" if self.meant else "ucp app list",
        )


class Tip(Files, Protocol):
    """The repository's content at one commit. Symbolic links aren't followed: NotEditable."""

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder, sorted; empty if it doesn't exist."""


@dataclass(frozen=True)
class Overlay:
    """`apps/<app>/overlays/<env>` at one commit."""

    app: str
    env: str
    folder: str
    path: str
    """The path to show to users: the kustomization, else the folder."""
    targets: tuple[Target, ...]
    marks: Mapping[str, Mark]
    files: EnvironmentFolder

    @property
    def pins(self) -> dict[str, Pin]:
        """The version of each image and chart."""
        return {target.name: target.pin for target in self.targets}

    def target(self, name: str) -> Target:
        """The target with that name, which must exist."""
        return next(each for each in self.targets if each.name == name)

    def changes(self, pins: Mapping[str, Pin]) -> tuple[Change, ...]:
        """Changes from the current versions to the given ones."""
        return tuple(Change(name, self.pins[name], pin) for name, pin in pins.items())

    def location_texts(self, names: Iterable[str]) -> tuple[str, ...]:
        """Where the versions are, if not in a kustomization's images."""
        return tuple(each for name in names if (each := self.target(name).location_text))

    def counterpart(self, target: Target) -> Target | None:
        """The target that corresponds to one of another environment, or None."""
        same = [each for each in self.targets if each.name == target.name]
        way = target.way()
        if not same and way:
            same = [each for each in self.targets if each.way() == way]
        return same[0] if len(same) == 1 else None


def read_overlay(tip: Tip, app: str, env: str) -> Overlay:
    """Read an overlay with its marks. Raises UsageError, NotEditable."""
    check_name("app", app)
    check_name("environment", env)
    folder = EnvironmentFolder(tip, overlay_folder(app, env))
    config = config_file(app)
    content = tip.read(config)
    named = read_config(None if content is None else decoded(content, config), config, env)
    try:
        found = find_targets(folder, env, named)
    except NoImages as error:
        if lines := _lines_of_images(tip, folder.path):
            what = f"add these lines to {error.where}, commit and push them, and run it again:"
            error.next = "\n    ".join([what, *lines])
        raise
    if found is None:
        refuse_unknown(tip, app, env)
        advice = f"add {folder.path}/{KUSTOMIZATIONS[0]}"
        raise NotEditable(f"{folder.path} has no kustomization file", next=advice)
    if not found.targets:
        raise nothing_found(tip, app, folder.path)
    marks = folder.text(MARKS_FILE)
    return Overlay(
        app,
        env,
        folder.path,
        f"{folder.path}/{found.file}".rstrip("/"),
        found.targets,
        order_of.read_marks(marks, f"{folder.path}/{MARKS_FILE}"),
        folder,
    )


def _lines_of_images(tip: Tip, folder: str) -> list[str]:
    """The lines that make the images of a kustomization promotable; empty if none are found.

    Only of files of the repository: a remote base is not read, nor what the tip doesn't have.
    """
    try:
        files = taken_in(FolderTree(names=tip.files, read=tip.read), [folder])
        versions = dict(images_in(readable(files)))
    except (UsageError, NotEditable):
        return []
    for used in sorted({path.rpartition("/")[0] for path in files}):
        # What bases set: their image has another version, and maybe another name.
        for entry in maps(kustomization(files, used), "images"):
            name = str(entry.get("name"))
            if name in versions:
                old = versions.pop(name)
                digest = f"@{entry['digest']}" if entry.get("digest") else ""
                new = f"{entry.get('newTag') or ''}{digest}"
                versions[str(entry.get("newName") or name)] = new or old
    lines = []
    for name, version in sorted(versions.items()):
        tag, _, digest = version.partition("@")
        lines += [f"  - name: {name}"]
        lines += [f"    newTag: {quoted(tag, '')}"] if tag else []
        lines += [f"    digest: {digest}"] if digest else []
    return ["images:", *lines] if lines else []


def nothing_found(tip: Tip, app: str, where: str) -> NotEditable:
    """Error for an overlay without an image whose version can be promoted."""
    config = config_file(app)
    files = tip.files(where)
    key, first = "path: image.tag", ""
    if CHART_FILE not in files:
        key = "file: FILE, path: spec.image"
    if any(each.endswith(".jsonnet") for each in files):
        # Argo CD renders jsonnet; its arguments are in this file.
        key = f"file: {SETTINGS}, path: directory.jsonnet.tlas.0.value"
        if not _has_arguments(tip.read(f"{where}/{SETTINGS}") or b""):
            first = (
                f"if {where} has a function with an argument for it, such as `tag`, add to "
                f"`directory` in its {SETTINGS}: jsonnet: {{tlas: [{{name: tag, value: VERSION}}]}}"
                "; then "
            )
    lines = f"{{image: NAME, {key}}}"
    if tip.read(config) is None:
        found = unnamed(EnvironmentFolder(tip, where), where.rpartition("/")[2])
        lines = ", ".join(found[:_MOST_PROPOSED]) or lines
    return NotEditable(
        f"{where} has no image whose version can be promoted"
        if tip.read(config) is None
        else f"{where} contains nothing that {config} names",
        next=f"{first}name it in {config}: targets: [{lines}]",
    )


def unnamed(folder: EnvironmentFolder, env: str) -> list[str]:
    """Entries of `.promotion.yaml` for a chart's images under keys that aren't searched."""
    if folder.text(CHART_FILE) is None:
        return []
    return unnamed_images(read_values(folder, env))


def _has_arguments(settings: bytes) -> bool:
    """Argo CD passes arguments to the functions of a folder with jsonnet."""
    found = part(part(first_map(settings, SETTINGS), "directory"), "jsonnet")
    return any(True for _ in maps(found, "tlas"))


def config_file(app: str) -> str:
    """The file in which users configure what is promoted for an app."""
    return f"apps/{app}/{MARKS_FILE}"


def overlay_folder(app: str, env: str) -> str:
    """Path of an app's overlay for an environment in the app repository."""
    return f"apps/{app}/overlays/{env}"


def check_name(what: str, name: str) -> None:
    """Raise UsageError for a name that isn't a valid folder name."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name of an {what}",
            next="use letters, digits, `-`, `_` and `.`",
        )


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for an unknown name."""
    if close := _similar(name, known):
        return f"did you mean {close}?"
    return f"known: {', '.join(known)}" if known else "none exist"


def _similar(name: str, known: Sequence[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), "")


Writes = Mapping[str, bytes | None]
"""New content by path; None deletes the file."""


def diff(tip: Tip, writes: Writes) -> str:
    """The writes as a patch to the tip, in git's format. Content that isn't text is left out."""
    return "".join(
        _file_diff(path, old, writes[path])
        for path in sorted(writes)
        if (old := tip.read(path)) != writes[path]
    )


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    import difflib

    head = f"diff --git a/{path} b/{path}\n"
    head += "new file mode 100644\n" if old is None else ""
    head += "deleted file mode 100644\n" if new is None else ""
    here = "/dev/null" if old is None else f"a/{path}"
    there = "/dev/null" if new is None else f"b/{path}"
    try:
        before, after = (_lines((each or b"").decode("utf-8")) for each in (old, new))
    except UnicodeDecodeError:
        return f"{head}Binary files {here} and {there} differ\n"
    lines = difflib.unified_diff(before, after, here, there)
    return head + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Lines as git knows them: only a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def written(
    overlay: Overlay,
    pins: Mapping[str, Pin],
    marks: Mapping[str, Mark],
    charts: Mapping[str, ChartContent] | None = None,
) -> dict[str, bytes | None]:
    """The files of the overlay that change if it gets these versions and marks.

    charts: content of the charts to promote that are copied to the folder, by name.
    """
    texts: dict[str, str] = {}
    files: dict[str, bytes | None] = {}
    for name in pins:
        if charts and name in charts:
            files |= exchange(overlay.files, overlay.env, charts[name])

    def text(name: str) -> str:
        new = files.get(name)
        found = texts.get(name, overlay.files.text(name) if new is None else new.decode())
        if found is None:
            raise NotEditable(f"{overlay.folder} has no file {name}")
        return found

    for name, pin in pins.items():
        texts |= write(overlay.target(name).locations, text, pin, overlay.folder)
    changed = {name: new.encode() for name, new in texts.items()}
    writes = {
        f"{overlay.folder}/{name}": new
        for name, new in {**files, **changed}.items()
        if name in files or new != (overlay.files.text(name) or "").encode()
    }
    if dict(marks) != dict(overlay.marks):
        writes[f"{overlay.folder}/{MARKS_FILE}"] = order_of.write_marks(marks).encode()
    return writes


def refuse_unknown(tip: Tip, app: str, env: str) -> None:
    """Raise OverlayMissing if the app or its overlay doesn't exist. env: "" is any."""
    apps = tip.folders("apps")
    if app not in apps:
        raise OverlayMissing(f"the app {app} does not exist in the repository", app, apps)
    envs = tip.folders(f"apps/{app}/overlays")
    if env and env not in envs:
        raise OverlayMissing(f"the app {app} has no overlay for the environment {env}", env, envs)


@dataclass(frozen=True)
class EditedTip:
    """A tip with changes on top that have not landed."""

    tip: Tip
    written: Writes

    def read(self, path: str) -> bytes | None:
        return self.written[path] if path in self.written else self.tip.read(path)

    def files(self, path: str) -> list[str]:
        new = {
            each: content for each, content in self.written.items() if each.startswith(path + "/")
        }
        added = {each[len(path) + 1 :] for each, content in new.items() if content is not None}
        deleted = {each[len(path) + 1 :] for each, content in new.items() if content is None}
        return sorted({*self.tip.files(path), *added} - deleted)

    def folders(self, path: str) -> list[str]:
        return self.tip.folders(path)
