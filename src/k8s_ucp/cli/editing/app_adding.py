"""What `ucp app add` was told, as an item of ucp.yaml: found, pinned, and copied where it must be.

A branch becomes the commit that it stands for, a chart's version the exact one, a folder outside
of the workspace a copy beside ucp.yaml. Nothing stays of an app that was refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from k8s_ucp.cli.command import option
from k8s_ucp.cli.editing.topology_edit import EditKept
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
"""Folder beside ucp.yaml for apps that were given by a folder elsewhere."""


@dataclass(frozen=True)
class AppFlags:
    """The flags. Empty: not given."""

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
    """Keys of the item that are written as they were given."""


@contextlib.contextmanager
def item_of(call: Invocation, topology: Topology, wanted: AppFlags) -> Iterator[dict[str, Any]]:
    """The item for ucp.yaml; copies that were made for it go again where the block fails, unless
    ucp.yaml has it.

    Raises UcpError, UsageError.
    """
    item: dict[str, Any] = {"name": wanted.name}
    with contextlib.ExitStack() as undone:
        if wanted.chart:
            item["chart"] = _chart(call, topology, wanted)
        elif wanted.repo:
            item |= _repository(call, topology, wanted)
        elif wanted.path:
            root = call.workspace.root
            item["path"] = _beside(root, wanted.path, f"{COPIES}/{wanted.name}", undone)
        item |= {key: value for key, value in wanted.more.items() if value}
        if wanted.repo and not wanted.chart and not item.get("as"):
            item["as"] = _form(call, topology, item)
        environments = [each.name for each in topology.spec.environments]
        if values := _by_environment(wanted.values, environments, "--values"):
            item["values"] = dict(item.get("values", {})) | {
                name: _values_file(call, wanted, each, undone) for name, each in values.items()
            }
        if overlays := _by_environment(wanted.overlays, environments, "--overlay"):
            item["overlays"] = overlays
        try:
            yield item
        except EditKept:
            undone.pop_all()
            raise
        undone.pop_all()


def _chart(call: Invocation, topology: Topology, wanted: AppFlags) -> dict[str, Any]:
    from k8s_ucp.cli.app_sources import credential_for, pinned_helm
    from k8s_ucp.gitops.manifests.chart_source import ChartRef, find_digest, find_version
    from k8s_ucp.workspace import cache_folder

    chart, repo = wanted.chart or "", wanted.repo
    if chart.startswith("oci://"):
        repo, _, chart = chart.rpartition("/")
    elif not repo:
        raise UsageError(
            f"the repository of the chart {chart} is not specified",
            next=f"ucp app add {wanted.name} --chart {chart} --repo https://… (or --chart oci://…)",
        )
    found = {"repo": repo.rstrip("/"), "name": chart, "version": wanted.version or "0"}
    if wanted.auth:
        found["auth"] = wanted.auth
    app = _parsed({"name": wanted.name, "chart": found})
    credential = credential_for(call, topology, app)
    place = ChartRef(found["repo"], chart)
    found["version"] = find_version(pinned_helm(), place, wanted.version, credential)
    found["digest"] = find_digest(
        pinned_helm(), place, found["version"], cache_folder(), credential
    )
    return found


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
    credential = credential_for(call, topology, _parsed(found))
    found["revision"] = find_commit(url, wanted.revision, credential)
    if wanted.revision != found["revision"]:
        name = wanted.revision or "the default branch"
        call.console.say(f"{name} of {url} is commit {found['revision']}")
    return found


def _parsed(item: Mapping[str, Any]) -> App:
    """The item as the topology will read it. Raises UsageError."""
    from pydantic import ValidationError

    from k8s_ucp.topology import App

    try:
        return App.model_validate(dict(item))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg']}", next="ucp app add --help") from error


def read_item(call: Invocation, topology: Topology, item: Mapping[str, Any]) -> None:
    """Fetch what an item names, and see that it is an app. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.render.app_manifests import read_app
    from k8s_ucp.gitops.render.brought import form_of

    app = _parsed(item)
    form_of(app, read_app(app, call.workspace.root, fetcher_of(call, topology)))


def _form(call: Invocation, topology: Topology, item: Mapping[str, Any]) -> str:
    """How the files of a commit are rendered; written down, as they are copied then."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import find_form
    from k8s_ucp.gitops.render.app_manifests import read_app

    app = _parsed(item)
    files = read_app(app, call.workspace.root, fetcher_of(call, topology))
    return find_form(files).form


def _beside(root: Path, path: str, copy: str, undone: contextlib.ExitStack) -> str:
    """A path below the folder of ucp.yaml: what lies elsewhere is copied there."""
    if path.startswith("ucp:"):
        return path
    source = Path(path).expanduser()
    inside = root / source
    if not source.is_absolute() and inside.exists() and _within(inside, root):
        return inside.resolve().relative_to(root.resolve()).as_posix()
    # What was typed is relative to where it was typed.
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
            here = _copy_folder(source, part) if source.is_dir() else ""
            if not source.is_dir():
                shutil.copyfile(source, part)
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
    """All files, by their path below a folder; of one file, that file's."""
    files = [each for each in place.rglob("*") if each.is_file()] if place.is_dir() else [place]
    return {str(each.relative_to(place)): each.read_bytes() for each in files}


def _copy_folder(source: Path, target: Path) -> str:
    """Without hidden files and links. Where it lies in the target.

    What it takes in from beside it, such as `../base`, comes along.
    """
    from k8s_ucp.gitops.render.app_manifests import outside

    top = _top(source)
    more = outside(source, top)
    root = Path(os.path.commonpath([source, *((top / each).parent for each in more)]))
    here = source.relative_to(root)
    shutil.copytree(source, target / here, symlinks=False, ignore=_not_copied)
    for path, content in more.items():
        file = target / (top / path).relative_to(root)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return "" if here == Path() else here.as_posix()


def _top(source: Path) -> Path:
    """How far a folder may reach: to the top of its git repository, else to the folder above."""
    for each in (source, *source.parents):
        if (each / ".git").exists():
            return each
    return source.parent


def _not_copied(folder: str, names: list[str]) -> list[str]:
    return [
        each
        for each in names
        if (each.startswith(".") and each != ".helmignore")
        or each == "node_modules"
        or Path(folder, each).is_symlink()
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
    """`FILE` for all environments, `ENVIRONMENT=FILE` for one. Raises UsageError."""
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
    """A file beside ucp.yaml or below, or the name of one in the chart."""
    if not Path(name).expanduser().exists() and not (call.workspace.root / name).exists():
        return name
    copy = f"{COPIES}/{wanted.name}-{Path(name).name}"
    return _beside(call.workspace.root, name, copy, undone)
