"""`ucp app add`: turns its arguments into an item of ucp.yaml; pins and copies the source.

A branch is resolved to its commit, a chart's version to the exact one, and a folder outside of the
workspace is copied next to ucp.yaml. Nothing remains of an app that is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.adding.chart_pins import Pin, UnpinnedChart, pin_now
from k8s_ucp.cli.editing.adding.copies import COPIES, beside
from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.cli.editing.adding.overlays import (
    add_command,
    check_other_overlays,
    environment_overlays,
    likeliest_folder,
    refuse_environment_folders,
)
from k8s_ucp.cli.plan_runner import EditKept, end_like_ctrl_c
from k8s_ucp.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.topology import App, Topology


@contextlib.contextmanager
def item_of(
    call: Invocation, topology: Topology, flags: AppFlags, pin: Pin | None = None
) -> Iterator[dict[str, Any]]:
    """The item for ucp.yaml; its copies are deleted if the block fails and the edit isn't kept.

    pin: pins its chart; None: fetch it now. Raises UcpError, UsageError.
    """
    item: dict[str, Any] = {"name": flags.name}
    end_like_ctrl_c()
    with contextlib.ExitStack() as undone:
        if flags.chart:
            chart = unpinned_chart(call, topology, flags)
            pinned = pin(chart) if pin else pin_now(call, topology, chart)
            auth = {"auth": flags.auth} if flags.auth else {}
            repository = {"repo": chart.ref.repository, "name": chart.ref.name}
            item["chart"] = {
                **repository,
                "version": pinned.version,
                **auth,
                "digest": pinned.digest,
            }
        elif flags.repo:
            item |= _repository(call, topology, flags)
        elif flags.path:
            root = call.workspace.root
            copy = f"{COPIES}/{flags.name}"
            item["path"] = beside(
                root, flags.path, copy, undone, folder=True, repository=flags.repository
            )
        item |= {key: value for key, value in flags.more.items() if value}
        environments = [each.name for each in topology.spec.environments]
        if overlays := _by_environment(flags.overlays, environments, "--overlay"):
            item["overlays"] = overlays
        if not item.keys() & {"as", "chart", "image"} and (flags.repo or not overlays):
            item |= _detected(call, topology, item, environments, flags)
        if values := _by_environment(flags.values, environments, "--values"):
            item["values"] = dict(item.get("values", {})) | {
                name: _values_file(call, flags, each, undone) for name, each in values.items()
            }
        if values or item.get("hosts"):
            _refuse_unread(call, topology, item, values=bool(values))
        try:
            yield item
        except EditKept:
            undone.pop_all()
            raise
        undone.pop_all()


def unpinned_chart(call: Invocation, topology: Topology, flags: AppFlags) -> UnpinnedChart:
    """The chart that an app's flags name. Raises UcpError, UsageError."""
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.gitops.manifests.chart_source import ChartRef

    chart, repo = flags.chart or "", flags.repo
    if chart.startswith("oci://"):
        repo, _, chart = chart.rpartition("/")
    elif not repo:
        raise UsageError(
            f"the repository of the chart {chart} is not specified",
            next=f"ucp app add {flags.name} --chart {chart} --repo https://… (or --chart oci://…)",
        )
    ref = ChartRef(repo.rstrip("/"), chart)
    # The version may be a range such as 1.x, which an item can't have.
    item = {"repo": ref.repository, "name": chart, "version": "0", "auth": flags.auth}
    app = parsed_item({"name": flags.name, "chart": item})
    return UnpinnedChart(ref, flags.version, credential_for(call, topology, app))


def _repository(call: Invocation, topology: Topology, flags: AppFlags) -> dict[str, Any]:
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.gitops.manifests.git_source import find_commit

    url = flags.repo or ""
    local = Path(url).expanduser()
    if "://" not in url and local.is_dir():
        url = local.resolve().as_uri()
    found: dict[str, Any] = {"name": flags.name, "repo": url, "revision": "HEAD"}
    if flags.path:
        found["path"] = flags.path.strip("/").removeprefix("./")
    if flags.auth:
        found["auth"] = flags.auth
    credential = credential_for(call, topology, parsed_item(found))
    found["revision"] = find_commit(url, flags.revision, credential)
    if flags.revision != found["revision"]:
        name = flags.revision or "the default branch"
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
    flags: AppFlags,
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
            error.next = add_command(flags, likeliest_folder(flags.name, error.folders))
            raise
        name = str(item["name"])
        found["overlays"] = environment_overlays(name, error.environments, environments)
        files = read() if "repo" in item else {}
    if not item.get("overlays") and not found:
        overlay_names = sorted(overlays_beside(files))
        check_other_overlays(call, str(item["name"]), overlay_names, environments)
    if not found and not item.get("overlays"):
        refuse_environment_folders(flags, files, environments)
    if "repo" in item:
        named = found.get("overlays") or item.get("overlays", ())
        found["as"] = find_form(files, named=named).form
    return found


def _refuse_unread(
    call: Invocation, topology: Topology, item: Mapping[str, Any], *, values: bool
) -> None:
    """Refuse values files of an app that is no chart, and hosts of one: nothing would read them.

    Raises UcpError.
    """
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.render.app_manifests import read_app
    from k8s_ucp.gitops.render.user_manifests import form_of

    app = parsed_item(item)
    if app.form not in ("path", "repo"):
        return
    form = form_of(app, read_app(app, call.workspace.root, fetcher_of(call, topology)))
    if values and form != "helm":
        raise UsageError(
            f"--values is only for Helm charts, but the form of the app {app.name} is {form}",
            next="leave out --values; edit the app's files instead, or its overlay of an "
            "environment in the app repository",
        )
    if app.hosts and form == "helm":
        raise UsageError(
            f"--host is not for Helm charts, but the app {app.name} is one",
            next="leave out --host; set the host in the chart's values (--values FILE)",
        )


def _by_environment(words: tuple[str, ...], environments: list[str], flag: str) -> dict[str, str]:
    """`FILE` stands for all environments, `ENVIRONMENT=FILE` for one. Raises UsageError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            found = {**dict.fromkeys(environments, word), **found}
        elif name not in environments:
            raise unknown_name("environment", name, environments, next=f"{flag} ENV={value}")
        else:
            found[name] = value
    return found


def _values_file(call: Invocation, flags: AppFlags, name: str, undone: contextlib.ExitStack) -> str:
    """The path of a file next to or below ucp.yaml, or the name of one in the chart."""
    if not Path(name).expanduser().exists() and not (call.workspace.root / name).exists():
        return name
    copy = f"{COPIES}/{flags.name}-{Path(name).name}"
    return beside(call.workspace.root, name, copy, undone)
