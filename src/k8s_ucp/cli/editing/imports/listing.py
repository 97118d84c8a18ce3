"""Prints what `ucp app import` finds, and what it would add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.command import Output, notation
from k8s_ucp.cli.console import table
from k8s_ucp.cli.editing.preview.dry_run import Refusals, changes
from k8s_ucp.errors import some_of

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.imports.selection import Selection
    from k8s_ucp.cli.editing.preview.granting import Inspection
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, RefusedApp

_ALIKE = 3
"""Maximum number of apps that are listed one by one with the same note or refusal."""


def show_found(call: Invocation, found: Discovery) -> None:
    """Print a table of the apps that can be added, notes, and a table of the others."""
    rows = [
        [each.name, _form(each), ", ".join(each.environments), each.namespace, each.where]
        for each in found.findings
    ]
    if rows:
        columns = ("app", "form", "environments", "namespace", "from")
        call.console.data(table(columns, rows, width=call.console.width))
    for note in found.notes:
        call.console.say(f"note: {note}")
    for line in note_lines((each.name, note) for each in found.findings for note in each.notes):
        call.console.say(line)
    refused = refusal_rows(found.refusals)
    if refused:
        heads = ("not added", "from", "reason", "what to do")
        call.console.data(("\n" if rows else "") + table(heads, refused))


def note_lines(notes: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each note of an app; one for many apps with the same note."""
    alike: dict[str, list[str]] = {}
    for name, note in notes:
        alike.setdefault(note, []).append(name)
    lines = []
    for note, names in alike.items():
        whose = names if len(names) <= _ALIKE else [some_of(names, _ALIKE)]
        lines += [f"note: {each}: {note}" for each in whose]
    return lines


def refusal_rows(refusals: Sequence[RefusedApp]) -> list[list[str]]:
    """A row for each app that can't be added; one for many with the same reason."""
    counted = Counter((each.reason, each.for_many) for each in refusals)
    alike: dict[tuple[str, str], list[RefusedApp]] = {}
    for each in refusals:
        many = each.for_many if counted[each.reason, each.for_many] > _ALIKE else ""
        alike.setdefault((each.reason, many or each.advice), []).append(each)
    rows = []
    for (reason, advice), apps in alike.items():
        if len(apps) > _ALIKE:
            names = list(dict.fromkeys(each.name for each in apps))
            where = some_of([each.where for each in apps], 1)
            rows.append([some_of(names, _ALIKE), where, reason, advice])
        else:
            rows += [[each.name, each.where, reason, advice] for each in apps]
    return rows


def _form(finding: DiscoveredApp) -> str | None:
    """None: unknown until the files are fetched."""
    remote = finding.remote
    return None if remote and not remote.chart and not finding.overlays else finding.form


def listing(found: Discovery) -> dict[str, Any]:
    """Apps and refusals for -o json and -o yaml."""
    return {
        "apps": [
            {
                "name": each.name,
                "form": _form(each),
                "environments": list(each.environments),
                "namespace": each.namespace,
                "from": each.where,
                "repository": each.remote.url if each.remote else None,
                "notes": list(each.notes),
            }
            for each in found.findings
        ],
        "notAdded": [
            {"name": each.name, "from": each.where, "reason": each.reason, "advice": each.advice}
            for each in found.refusals
        ],
        "notes": list(found.notes),
    }


def preview_import(
    call: Invocation, edit: Edit, selection: Selection, inspection: Inspection, output: Output
) -> Refusals:
    """Print the files that would be changed, and why apps would be refused. Raises UcpError."""
    people = output is Output.table
    files, refusals = changes(call, edit, [*selection.choices], inspection, notes=people)
    if not people:
        listed = [{"file": file, "change": what} for file, what in files]
        data = {**listing(selection.found), "files": listed, "refusedByCheck": refusals.reasons}
        call.console.data(notation(data, output))
        return refusals
    call.console.data("\n".join(["", *(f"# {file} ({what})" for file, what in files)]))
    for each in refusals.reasons:
        call.console.say(f"would be refused: {each}")
    if flags := selection.without(refusals.apps) if refusals.apps else "":
        call.console.say(f"  next: to add the others only: {flags}")
    return refusals
