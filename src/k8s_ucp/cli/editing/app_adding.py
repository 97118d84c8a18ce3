"""`ucp app add`: turns its arguments into an item of ucp.yaml; pins and copies the source.

A branch is resolved to its commit, a chart's version to the exact one, and a folder outside of the
workspace is copied next to ucp.yaml. Nothing remains of an app that is refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from k8s_ucp.cli.command import option
from k8s_ucp.cli.editing.chart_pins import Pin, UnpinnedChart, pin_now
from k8s_ucp.cli.editing.topology_edit import EditKept
from k8s_ucp.cli.plan_runner import end_like_ctrl_c
from k8s_ucp.errors import UcpError, UsageError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.topology import App, Topology

RevisionOption = Annotated[
    str | None,
    option("--revision", "REV", "Branch, tag or commit in REPO; pinned to the commit.", "--ref"),
]
AuthOption = Annotated[
    str | None, option("--auth", "NAME", "Name of the credential in ucp.yaml for REPO.")
]

COPIES = "manifests"
"""Folder next to ucp.yaml for copies of apps that were given by a folder elsewhere."""


@dataclass(frozen=True)
class AppFlags:
    """The flags of an app; empty: not given."""

    name: str
    path: str | None = None
    repo: str | None = None
    revision: str | None = None
    chart: str | None = None
    version: str | None = None
    auth: str | None = None
    values: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    """Keys that are written to the item unchanged."""
    repository: Path | None = None
    """The folder that the files of its path may be anywhere in; None: not known."""


@contextlib.contextmanager
def item_of(
    call: Invocation, topology: Topology, wanted: AppFlags, pin: Pin | None = None
) -> Iterator[dict[str, Any]]:
    """The item for ucp.yaml; its copies are deleted if the block fails and the edit isn't kept.

    pin: pins its chart; None: fetch it now. Raises UcpError, UsageError.
    """
    item: dict[str, Any] = {"name": wanted.name}
    end_like_ctrl_c()
    with contextlib.ExitStack() as undone:
        if wanted.chart:
            chart = unpinned_chart(call, topology, wanted)
            pinned = pin(chart) if pin else pin_now(call, topology, chart)
            auth = {"auth": wanted.auth} if wanted.auth else {}
            place = {"repo": chart.place.repository, "name": chart.place.name}
            item["chart"] = {**place, "version": pinned.version, **auth, "digest": pinned.digest}
        elif wanted.repo:
            item |= _repository(call, topology, wanted)
        elif wanted.path:
            root = call.workspace.root
            copy = f"{COPIES}/{wanted.name}"
            item["path"] = _beside(
                root, wanted.path, copy, undone, folder=True, repository=wanted.repository
            )
        item |= {key: value for key, value in wanted.more.items() if value}
        environments = [each.name for each in topology.spec.environments]
        if overlays := _by_environment(wanted.overlays, environments, "--overlay"):
            item["overlays"] = overlays
        if not item.keys() & {"as", "chart", "image"} and (wanted.repo or not overlays):
            item |= _detected(call, topology, item, environments, wanted)
        if values := _by_environment(wanted.values, environments, "--values"):
            item["values"] = dict(item.get("values", {})) | {
                name: _values_file(call, wanted, each, undone) for name, each in values.items()
            }
        try:
            yield item
        except EditKept:
            undone.pop_all()
            raise
        undone.pop_all()


def unpinned_chart(call: Invocation, topology: Topology, wanted: AppFlags) -> UnpinnedChart:
    """The chart that an app's flags name. Raises UcpError, UsageError."""
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.gitops.manifests.chart_source import ChartRef

    chart, repo = wanted.chart or "", wanted.repo
    if chart.startswith("oci://"):
        repo, _, chart = chart.rpartition("/")
    elif not repo:
        raise UsageError(
            f"the repository of the chart {chart} is not specified",
            next=f"ucp app add {wanted.name} --chart {chart} --repo https://… (or --chart oci://…)",
        )
    place = ChartRef(repo.rstrip("/"), chart)
    # The version may be a range such as 1.x, which an item can't have.
    item = {"repo": place.repository, "name": chart, "version": "0", "auth": wanted.auth}
    app = parsed_item({"name": wanted.name, "chart": item})
    return UnpinnedChart(place, wanted.version, credential_for(call, topology, app))


def _repository(call: Invocation, topology: Topology, wanted: AppFlags) -> dict[str, Any]:
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.gitops.manifests.git_source import find_commit

    url = wanted.repo or ""
    local = Path(url).expanduser()
    if "://" not in url and local.is_dir():
        url = local.resolve().as_uri()
    found: dict[str, Any] = {"name": wanted.name, "repo": url, "revision": "HEAD"}
    if wanted.path:
        found["path"] = wanted.path.strip("/").removeprefix("./")
    if wanted.auth:
        found["auth"] = wanted.auth
    credential = credential_for(call, topology, parsed_item(found))
    found["revision"] = find_commit(url, wanted.revision, credential)
    if wanted.revision != found["revision"]:
        name = wanted.revision or "the default branch"
        call.console.say(f"{name} of {url} is commit {found['revision']}")
    return found


def parsed_item(item: Mapping[str, Any]) -> App:
    """The item, validated as part of a topology. Raises UsageError."""
    from pydantic import ValidationError

    from k8s_ucp.topology import App
    from k8s_ucp.topology.problems import from_pydantic

    try:
        return App.model_validate(dict(item))
    except ValidationError as error:
        first, *_ = from_pydantic(error.errors(), App)
        raise UsageError(first.message, next="ucp app add --help") from error


def read_item(call: Invocation, topology: Topology, item: Mapping[str, Any]) -> None:
    """Fetch the source of an item, and check that it is an app. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import manifest_files
    from k8s_ucp.gitops.render.app_manifests import read_app
    from k8s_ucp.gitops.render.user_manifests import form_of

    app = parsed_item(item)
    files = read_app(app, call.workspace.root, fetcher_of(call, topology))
    if form_of(app, files) in ("directory", "jsonnet"):
        # Argo CD also reads every manifest next to jsonnet files.
        manifest_files(files)


def _detected(
    call: Invocation,
    topology: Topology,
    item: Mapping[str, Any],
    environments: list[str],
    wanted: AppFlags,
) -> dict[str, Any]:
    """Keys derived from an app's files: its overlays in envs/ or the like, and its form.

    The form is recorded only together with a commit, whose files are copied. Raises UcpError.
    """
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import SeveralFolders, find_form, overlays_beside
    from k8s_ucp.gitops.render.app_manifests import read_app

    found: dict[str, Any] = {}

    def read() -> dict[str, bytes]:
        return read_app(
            parsed_item({**item, **found}), call.workspace.root, fetcher_of(call, topology)
        )

    try:
        files = read()
    except SeveralFolders as error:
        if not error.environments:
            error.next = _choice(wanted, _likeliest(wanted.name, error.folders))
            raise
        name = str(item["name"])
        found["overlays"] = _environment_overlays(name, error.environments, environments)
        files = read() if "repo" in item else {}
    if not item.get("overlays") and not found:
        overlay_names = sorted(overlays_beside(files))
        _meet_other_overlays(call, str(item["name"]), overlay_names, environments)
    if not found and not item.get("overlays"):
        _meet_environments(wanted, files, environments)
    if "repo" in item:
        named = found.get("overlays") or item.get("overlays", ())
        found["as"] = find_form(files, named=named).form
    return found


def _likeliest(name: str, folders: Sequence[str]) -> str:
    """The folder with the name of the app, or else the first one."""
    return next((each for each in folders if each.rpartition("/")[2] == name), folders[0])


def _choice(wanted: AppFlags, folder: str) -> str:
    """The command for one of the folders below the given one."""
    place = "/".join(each.rstrip("/") for each in (wanted.path, folder) if each)
    everything = f"ucp app import {wanted.repo or wanted.path} lists them all"
    if not wanted.repo:
        return f"ucp app add {wanted.name} {place} (or another one; {everything})"
    ref = f" --ref {wanted.revision}" if wanted.revision else ""
    return (
        f"ucp app add {wanted.name} {wanted.repo} --path {place}{ref} "
        f"(or another one; {everything})"
    )


def _environment_overlays(
    name: str, folders: Mapping[str, str], environments: list[str]
) -> dict[str, str]:
    """{environment: folder} for an app with a folder per environment.

    Raises UsageError if some environments have none, since guessing could deploy the wrong one.
    """
    missing = [each for each in environments if each not in folders]
    if missing:
        proposed = {each: _alike(each, folders) or "DIR" for each in environments}
        raise _not_named(name, folders, missing, proposed)
    return {each: folders[each] for each in environments}


def _meet_other_overlays(
    call: Invocation, name: str, overlay_names: list[str], environments: list[str]
) -> None:
    """Handle overlays in overlays/ whose names are not those of environments.

    Raises UsageError if one of them is probably meant for an environment without an overlay.
    """
    missing = [each for each in environments if each not in overlay_names]
    free = {each: f"overlays/{each}" for each in overlay_names if each not in environments}
    proposed = {each: folder for each in missing if (folder := _alike(each, free))}
    if proposed:
        raise _not_named(name, overlay_names, missing, proposed)
    if overlay_names and missing:
        call.console.say(
            f"{name}: no overlay for {', '.join(missing)}, only for {', '.join(overlay_names)} "
            "(--overlay ENV=DIR names one)"
        )


def _meet_environments(
    wanted: AppFlags, files: Mapping[str, bytes], environments: Collection[str]
) -> None:
    """Refuse plain manifests in folders named like environments: all would go to each environment.

    Raises UsageError.
    """
    from k8s_ucp.gitops.imports.findings import NAMES
    from k8s_ucp.gitops.manifests.forms import is_kustomization, overlays

    if is_kustomization(files) or "Chart.yaml" in files or overlays(files):
        return
    tops = {path.partition("/")[0] for path in files if "/" in path}
    folders = sorted(tops & (NAMES | {*environments}) - {"test", "testing"})
    if folders:
        source = wanted.path or "."
        if wanted.repo:
            source = f"FOLDER of a clone of {wanted.repo}"
        raise UsageError(
            f"the app {wanted.name} has manifests of its own for {', '.join(folders)}, which would "
            "all be on every environment",
            next=f"ucp app import {source} makes an overlay of each",
        )


def _not_named(
    app: str, overlay_names: Iterable[str], missing: list[str], proposed: Mapping[str, str]
) -> UsageError:
    """The error for environments without an overlay. proposed: {environment: a folder}"""
    flags = " ".join(f"--overlay {each}={folder}" for each, folder in proposed.items())
    return UsageError(
        f"the app {app} has overlays for {', '.join(overlay_names)}, "
        f"but not for {', '.join(missing)}",
        next=f"name one for each environment: run the command again with {flags}",
    )


def _alike(environment: str, folders: Mapping[str, str]) -> str | None:
    """The folder whose name resembles that of an environment."""
    from k8s_ucp.topology.problems import nearest

    longer = (each for each in folders if each.startswith(environment))
    name = next(longer, None) or nearest(environment, folders)
    return folders[name] if name else None


def _beside(
    root: Path,
    path: str,
    copy: str,
    undone: contextlib.ExitStack,
    *,
    folder: bool = False,
    repository: Path | None = None,
) -> str:
    """A path below the folder of ucp.yaml; a source elsewhere is copied there.

    folder: copy a single file into a folder of its own. repository: as in AppFlags.
    """
    if path.startswith("ucp:"):
        return path
    source = Path(path).expanduser()
    inside = root / source
    if not source.is_absolute() and inside.exists() and _within(inside, root):
        return inside.resolve().relative_to(root.resolve()).as_posix()
    # A typed path is relative to the current folder.
    source = source.resolve()
    if not source.exists():
        raise UsageError(f"{path} exists neither in the current folder nor next to ucp.yaml")
    if _within(source, root):
        return source.relative_to(root.resolve()).as_posix()
    target = root / copy
    made = _make_folder(target.parent)
    if not target.exists():
        undone.callback(_remove, target, made)
    try:
        with tempfile.TemporaryDirectory(prefix=".ucp-copy-", dir=target.parent) as work:
            part = Path(work, "copy")
            here = _copy_folder(source, part, repository) if source.is_dir() else ""
            if not source.is_dir():
                if folder:
                    part.mkdir()
                shutil.copyfile(source, part / source.name if folder else part)
            if not target.exists():
                part.rename(target)
            elif _contents(part) != _contents(target):
                raise UsageError(
                    f"failed to copy {path}: {target} already exists, with other contents",
                    next=f"delete it, or use it with --path {copy}",
                )
            return f"{copy}/{here}".rstrip("/")
    except OSError as error:
        raise UcpError(f"failed to copy {source} to {target}: {error.strerror or error}") from error


def _contents(place: Path) -> dict[str, bytes]:
    """All files by their path below a folder; or the content of a single file."""
    files = [each for each in place.rglob("*") if each.is_file()] if place.is_dir() else [place]
    return {str(each.relative_to(place)): each.read_bytes() for each in files}


def _copy_folder(source: Path, target: Path, repository: Path | None) -> str:
    """Copy a folder without hidden files; returns its path within the target.

    A link becomes a copy of its file if that is in the same repository, and is left out otherwise.

    Files outside of it that it refers to, such as `../base`, are copied, too.
    """
    from k8s_ucp.gitops.render.app_manifests import outside

    top = _top(source, repository)
    more = outside(source, top)
    root = Path(os.path.commonpath([source, *((top / each).parent for each in more)]))
    here = source.relative_to(root)
    shutil.copytree(source, target / here, symlinks=False, ignore=partial(_not_copied, top))
    for path, content in more.items():
        file = target / (top / path).relative_to(root)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return "" if here == Path() else here.as_posix()


def _top(source: Path, repository: Path | None) -> Path:
    """The outermost folder that a folder may refer to: its git repository, or else its parent.

    For `overlays/production` and the like, that is the folder with the base. repository: as far as
    known without git, such as the unpacked archive of one.
    """
    from k8s_ucp.gitops.imports.findings import PARENTS

    for each in (source, *source.parents):
        if (each / ".git").exists():
            return each
    if repository and _within(source, repository):
        return repository.resolve()
    return source.parent.parent if source.parent.name in PARENTS else source.parent


def _not_copied(top: Path, folder: str, names: list[str]) -> list[str]:
    from k8s_ucp.gitops.render.app_manifests import links_within

    def is_left_out(link: Path) -> bool:
        return link.is_symlink() and not links_within(link, top)

    return [
        each
        for each in names
        if (each.startswith(".") and each != ".helmignore")
        or each == "node_modules"
        or is_left_out(Path(folder, each))
    ]


def _make_folder(folder: Path) -> bool:
    if folder.is_dir():
        return False
    folder.mkdir(parents=True)
    return True


def _remove(target: Path, folder_too: bool) -> None:
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(OSError):
        target.unlink(missing_ok=True)
    if folder_too:
        with contextlib.suppress(OSError):
            target.parent.rmdir()


def _within(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def _by_environment(words: tuple[str, ...], environments: list[str], flag: str) -> dict[str, str]:
    """`FILE` stands for all environments, `ENVIRONMENT=FILE` for one. Raises UsageError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            found = {**dict.fromkeys(environments, word), **found}
        elif name not in environments:
            known = ", ".join(environments)
            raise UsageError(f"{flag} {word}: unknown environment {name}; available: {known}")
        else:
            found[name] = value
    return found


def _values_file(
    call: Invocation, wanted: AppFlags, name: str, undone: contextlib.ExitStack
) -> str:
    """The path of a file next to or below ucp.yaml, or the name of one in the chart."""
    if not Path(name).expanduser().exists() and not (call.workspace.root / name).exists():
        return name
    copy = f"{COPIES}/{wanted.name}-{Path(name).name}"
    return _beside(call.workspace.root, name, copy, undone)
