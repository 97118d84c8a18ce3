"""The output of `--dry-run`: files, objects, and why the command would fail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.cli.editing.preview.app_objects import AppObjects, has_own_manifests, objects_of
from k8s_ucp.cli.editing.preview.checks import blocking, findings_of
from k8s_ucp.cli.editing.preview.conflicts import find_conflict
from k8s_ucp.cli.editing.preview.notes import (
    print_foreign_kinds,
    print_notes_of,
    report_form,
)
from k8s_ucp.cli.editing.preview.permissions import refusals_of
from k8s_ucp.cli.editing.preview.rendering import before_and_after, differing_files
from k8s_ucp.cli.topology_selection import declared_file
from k8s_ucp.errors import UcpError, UsageError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation, Output
    from k8s_ucp.cli.editing.preview.granting import Inspection
    from k8s_ucp.cli.editing.topology_edit import Edit


@dataclass(frozen=True)
class Refusals:
    """Reasons for which the command would fail without --dry-run."""

    permissions: Sequence[str] = ()
    """What the apps aren't allowed."""
    findings: Sequence[str] = ()
    """Findings of the check."""
    apps: Collection[str] = ()
    """The apps that they are about."""
    conflict: str | None = None
    """With commits of people."""

    @property
    def reasons(self) -> list[str]:
        return [*self.findings, *self.permissions, *filter(None, [self.conflict])]

    @property
    def exit_code(self) -> int:
        """That of the command, which asks for permissions before it runs the check."""
        if self.permissions:
            return UsageError.exit_code
        return UcpError.exit_code if self.findings or self.conflict else 0


def preview(call: Invocation, edit: Edit, name: str) -> Refusals:
    """Print the files that a commit would change, and the objects of each environment.

    Raises UcpError if something can't be rendered.
    """
    from k8s_ucp.gitops.check.findings import lines_of

    report_form(call, edit, name)
    text, topology, before, after = before_and_after(call, edit)
    call.console.data(f"# {declared_file(call).name}\n{text}")
    for file, what in differing_files(before, after):
        call.console.data(f"# {file} ({what})")
    app = next(each for each in topology.spec.apps if each.name == name)
    built = objects_of(call, after, topology, [app])
    app_objects = built[name]
    for environment, shown in app_objects.texts.items():
        call.console.data(f"# {name} on {environment}\n{shown}")
    found = findings_of(call, after, topology, built)
    for line in lines_of(each for each in found if not each.blocks):
        call.console.say(line)
    errors = lines_of(blocking(found))
    for line in errors:
        call.console.say(f"would be refused: {line}")
    if conflict := find_conflict(call, edit):
        call.console.say(f"would be refused: {conflict}")
    if not has_own_manifests(app):
        return Refusals(findings=errors, conflict=conflict)
    print_foreign_kinds(call, topology, {name: app_objects})
    print_notes_of(call, topology, app, app_objects)
    lacking = refusals_of(app, app_objects)
    for words in lacking:
        call.console.say(f"would be refused: {words}")
    return Refusals(lacking, errors, conflict=conflict)


def show_changes(
    call: Invocation, edit: Edit, output: Output, more: Sequence[tuple[str, str]] = ()
) -> int:
    """Print the files that a commit would change, of an edit that adds no app; the exit code.

    more: files of other repositories. Raises UcpError.
    """
    from k8s_ucp.cli.editing.preview.granting import Inspection

    files, refusals = changes(call, edit, [], Inspection())
    files += more
    data = {
        "files": [{"path": path, "change": what} for path, what in files],
        "refused": refusals.reasons,
    }
    call.show_list(output, data, ("file", "change"), files)
    for reason in refusals.reasons:
        call.console.say(f"would be refused: {reason}")
    return refusals.exit_code


def changes(
    call: Invocation,
    edit: Edit,
    names: Sequence[str],
    inspection: Inspection,
    *,
    notes: bool = False,
) -> tuple[list[tuple[str, str]], Refusals]:
    """(files that a commit would add or change, why these apps would be refused).

    notes: print what people should know of the apps. Raises UcpError.
    """
    from k8s_ucp.gitops.check.findings import apps_of, lines_of

    _, topology, before, after = before_and_after(call, edit)
    lacking: list[str] = []
    refused: set[str] = set()
    if notes:
        print_foreign_kinds(
            call,
            topology,
            {name: each for name, each in inspection.app_objects.items() if name in names},
        )
    for app in topology.spec.apps:
        if app.name in names and (app_objects := inspection.app_objects.get(app.name)):
            if notes:
                print_notes_of(call, topology, app, app_objects)
            refusals = refusals_of(app, app_objects, f"{app.name}=")
            refused |= {app.name} if refusals else set()
            lacking += [f"{app.name}: {each.removeprefix(f'{app.name}: ')}" for each in refusals]
    built = {name: inspection.app_objects.get(name, AppObjects()) for name in names}
    found = blocking(findings_of(call, after, topology, built))
    return differing_files(before, after), Refusals(
        lacking, lines_of(found), refused | apps_of(found), find_conflict(call, edit)
    )
