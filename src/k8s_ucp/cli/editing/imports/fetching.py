"""Fetches and builds the apps of an import; those for which that fails are left out."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.adding.chart_pins import (
    Pin,
    UnpinnedChart,
    fetch_dependencies,
    pinned_concurrently,
)
from k8s_ucp.cli.editing.adding.items import item_of, read_item, unpinned_chart
from k8s_ucp.cli.editing.imports.selection import Candidate, ChosenApp, Selection
from k8s_ucp.cli.editing.preview.app_objects import AppObjects
from k8s_ucp.cli.editing.preview.granting import Inspection, inspect_apps
from k8s_ucp.cli.editing.preview.permissions import is_application
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.gitops.imports.findings import NotImportable, RemoteSource, app_name, sources_of
from k8s_ucp.gitops.manifests.yaml_text import part
from k8s_ucp.topology import parse
from k8s_ucp.topology.edit import with_items

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.imports.trees import Origin
    from k8s_ucp.gitops.manifests.reachable import FolderTree
    from k8s_ucp.topology import Topology

_VALUES = re.compile(r"(?:run the command again with |(?<=: ))--values")
"""The flag in an advice, unless it is part of a command."""
_COMMANDS = 3
"""Maximum number of commands that an advice lists."""


def fetch_apps(
    call: Invocation,
    topology: Topology,
    selection: Selection,
    candidates: Sequence[Candidate],
    folder_tree: FolderTree,
    undone: contextlib.ExitStack,
) -> None:
    """Fetch apps, and add them to the selection; their charts are fetched at the same time.

    folder_tree: the repository of the import. undone: removes the apps' copies if the import fails.
    Raises UcpError for an app that the user named.
    """
    pin = undone.enter_context(
        pinned_concurrently(call, topology, _charts(call, topology, candidates))
    )
    failures = fetch_dependencies(call, topology, folder_tree, _local_charts(candidates))
    for each in candidates:
        try:
            if failed := failures.get(each.name):
                raise failed
            _fetch(call, topology, selection, each, pin, undone)
        except (NotImportable, UcpError) as error:
            selection.leave_out(each.finding, error)


def _fetch(
    call: Invocation,
    topology: Topology,
    selection: Selection,
    candidate: Candidate,
    pin: Pin,
    undone: contextlib.ExitStack,
) -> None:
    with contextlib.ExitStack() as copies:
        item = copies.enter_context(item_of(call, topology, candidate.flags, pin))
        read_item(call, topology, item)
        kept = copies.pop_all()
    undone.push(kept)
    selection.choices[candidate.name] = ChosenApp(candidate, item, kept)


def _charts(
    call: Invocation, topology: Topology, candidates: Sequence[Candidate]
) -> list[UnpinnedChart]:
    """The charts of apps; what is wrong with one is said when its turn comes."""
    found = []
    for each in candidates:
        with contextlib.suppress(UcpError):
            found += [unpinned_chart(call, topology, each.flags)] if each.flags.chart else []
    return found


def _local_charts(candidates: Sequence[Candidate]) -> dict[str, str]:
    """{app: folder of its chart} of those in the repository itself."""
    return {
        each.name: each.request.path
        for each in candidates
        if each.finding.form == "helm" and each.finding.remote is None
    }


def adding(selection: Selection) -> Edit:
    """Adds the items of a selection to ucp.yaml. With many, that takes long: it keeps the result.

    Flags and answers change the items in between.
    """
    kept: dict[tuple[str, Path, str], tuple[str, Topology]] = {}

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        key = text, file, json.dumps(list(selection.items.values()))
        if key not in kept:
            items = [*selection.items.values()]
            edited = with_items(text, "apps", items, file) if items else (text, parse(text, file))
            kept.clear()
            kept[key] = edited
        return kept[key]

    return edit


def build_apps(call: Invocation, edit: Edit, selection: Selection, origin: Origin) -> Inspection:
    """Build all apps on all environments. Those that can't be added are left out of the selection.

    Raises UcpError for an app that the user named and that can't be built, with the flags that add
    the others.
    """
    inspection = inspect_apps(call, edit, [*selection.choices])
    for name, error in (*inspection.failures.items(), *inspection.forbidden.items()):
        candidate = selection.choices[name].candidate
        if error.next and candidate.finding.remote is None:
            # `ucp app add` has flags for values, which an import doesn't have.
            command = origin.command(name, candidate.request.path)
            error.next = _VALUES.sub(f"{command} --values".replace("\\", r"\\"), error.next)
    for name, error in inspection.failures.items():
        choice = selection.choices[name]
        if selection.explicit:
            error.apps = (name,)
            raise error
        selection.leave_out(choice.candidate.finding, error)
    for name, why in declaring_applications(inspection, selection).items():
        selection.leave_out(selection.choices[name].candidate.finding, why)
    if not selection.explicit:
        problems: dict[str, NotImportable | UcpError] = {}
        problems |= empty_charts(inspection, selection, origin)
        problems |= {
            name: each for name, each in inspection.forbidden.items() if name in selection.choices
        }
        for name, problem in problems.items():
            selection.leave_out(selection.choices[name].candidate.finding, problem)
    return inspection


def declaring_applications(
    inspection: Inspection, selection: Selection
) -> dict[str, NotImportable]:
    """{app: why it is left out, with what adds the apps that its Applications deploy}."""
    found = {}
    for name, choice in selection.choices.items():
        app_objects = inspection.app_objects.get(name, AppObjects())
        declared = [each for each in app_objects.objects if is_application(each)]
        if declared:
            reason = (
                "it declares Argo CD Applications, which are allowed in the core repository only"
            )
            advice = _deployed_by(declared)
            remote = choice.candidate.finding.remote
            if remote and not remote.chart:
                ref = ["--ref", remote.revision] if remote.revision else []
                advice = command_line("ucp", "app", "import", remote.url, *ref)
            found[name] = NotImportable(reason, f"add the apps that they deploy instead: {advice}")
    return found


def _deployed_by(declared: Sequence[Mapping[str, Any]]) -> str:
    """The commands that add what Applications with a single source deploy."""
    commands: dict[tuple[str, ...], str] = {}
    for each in declared:
        [source, *others] = sources_of(each)
        url, chart, path = (str(source.get(key) or "") for key in ("repoURL", "chart", "path"))
        if others or not url or each.get("kind") != "Application":
            continue
        revision = str(source.get("targetRevision") or "HEAD")
        pinned = None if revision == "HEAD" else revision
        name = app_name(str(part(each, "metadata").get("name")))
        command = RemoteSource(url, pinned, chart or None).command(name, path)
        commands.setdefault((url, chart, path), command)
    some = [*commands.values()][:_COMMANDS]
    left = len(commands) - len(some)
    more = f"; and {left} more" if left else ""
    return f"{'; '.join(some)}{more}" if some else "ucp app add NAME REPO --path FOLDER for each"


def empty_charts(
    inspection: Inspection, selection: Selection, origin: Origin
) -> dict[str, NotImportable]:
    """{app: why it is left out} of charts that render nothing, such as shared templates."""
    found = {}
    for name, choice in selection.choices.items():
        app_objects, finding = inspection.app_objects.get(name), choice.candidate.finding
        if app_objects and app_objects.is_chart and not app_objects.objects:
            advice = f"--app {name} adds it nevertheless"
            if finding.remote is None:
                command = origin.command(name, choice.candidate.request.path)
                advice = f"{command} --values FILE, if the chart lacks values"
            found[name] = NotImportable("its chart renders no objects", advice)
    return found
