"""Asks for the permissions that apps need beyond their own namespaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.preview.app_objects import has_own_manifests, objects_of
from k8s_ucp.cli.editing.preview.notes import print_foreign_kinds, print_notes_of
from k8s_ucp.cli.editing.preview.permissions import find_forbidden, lacking_permissions
from k8s_ucp.cli.editing.preview.rendering import edited, render_repositories
from k8s_ucp.errors import UcpError, UsageError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.preview.app_objects import AppObjects
    from k8s_ucp.cli.editing.preview.permissions import LackingPermissions
    from k8s_ucp.cli.editing.topology_edit import Edit


@dataclass(frozen=True)
class Inspection:
    """What apps would create in all environments, by name."""

    app_objects: Mapping[str, AppObjects] = field(default_factory=dict)
    failures: Mapping[str, UcpError] = field(default_factory=dict)
    """Errors of apps that can't be built."""
    forbidden: Mapping[str, UcpError] = field(default_factory=dict)
    """Errors of apps that create what no flag allows."""


def inspect_apps(call: Invocation, edit: Edit, names: Collection[str]) -> Inspection:
    """Build apps that have their own manifests, for every environment. Raises UcpError."""
    text, topology = edited(call, edit)
    apps = [each for each in topology.spec.apps if each.name in names and has_own_manifests(each)]
    if not apps:
        return Inspection()
    failures: dict[str, UcpError] = {}
    after = render_repositories(call, text.encode(), topology)
    found = objects_of(call, after, topology, apps, failures)
    problems = {each.name: find_forbidden(each, found[each.name]) for each in apps}
    forbidden = {name: each for name, each in problems.items() if each and name not in failures}
    return Inspection(found, failures, forbidden)


def grant(
    call: Invocation,
    edit: Edit,
    items: Mapping[str, dict[str, Any]],
    inspection: Inspection,
    *,
    named: bool = False,
) -> None:
    """Ask for permissions that apps need beyond their namespaces; none is granted silently.

    items: items of ucp.yaml by app, to which permissions are added. named: flags include the app's
    name. Raises UcpError for an app that can't be added, and with the flags for all apps if a
    confirmation is impossible.
    """
    lacking: dict[str, LackingPermissions] = {}
    _, topology = edited(call, edit)
    built = inspection.app_objects
    print_foreign_kinds(call, topology, {name: built[name] for name in items if name in built})
    for app in topology.spec.apps:
        if app.name not in items or app.name not in inspection.app_objects:
            continue
        if problem := inspection.failures.get(app.name):
            raise problem
        app_objects = inspection.app_objects[app.name]
        print_notes_of(call, topology, app, app_objects)
        if problem := inspection.forbidden.get(app.name):
            raise problem
        wanted = lacking_permissions(app, app_objects)
        if wanted.any:
            lacking[app.name] = wanted
    _ask(lacking, items, named=named)


def _ask(
    lacking: Mapping[str, LackingPermissions], items: Mapping[str, dict[str, Any]], *, named: bool
) -> None:
    from k8s_ucp.cli.questions import can_ask, confirm

    if lacking and not can_ask():
        flags = (each.flags(f"{name}=" if named else "") for name, each in lacking.items())
        raise UsageError(
            "\n  ".join(f"{name}: {each.words}" for name, each in lacking.items()),
            next="".join(
                [
                    f"allow it: run the command again with {' '.join(flags)}",
                    *(f"; {each.advice}" for each in lacking.values() if each.advice),
                ]
            ),
            apps=lacking,
        )
    for name, each in lacking.items():
        if not confirm(f"{name}: {each.words}. Allow it?", default=False):
            raise UsageError(f"{name}: {each.words}; this was not allowed")
        for key, words in each.keys.items():
            items[name][key] = [*items[name].get(key, ()), *words]
        if each.moves:
            items[name]["namespace"] = each.namespaces[0]
