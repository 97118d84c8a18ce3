"""`ucp app import`: adds the apps of an existing GitOps repository, in one commit."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from k8s_ucp.cli.command import Invocation, Output, OutputOption, invocation, notation, option
from k8s_ucp.cli.editing.adding.options import AuthOption, RevisionOption
from k8s_ucp.cli.editing.deletion import how_far
from k8s_ucp.cli.editing.imports.candidates import ImportAnswers, candidate
from k8s_ucp.cli.editing.imports.choices import (
    OTHERS,
    by_app,
    complete_mapping,
    given_mapping,
    given_names,
    noting_unknown,
    pick_apps,
    refuse_unknown,
    renamed,
    without_taken,
)
from k8s_ucp.cli.editing.imports.fetching import adding, build_apps, fetch_apps
from k8s_ucp.cli.editing.imports.history import MovedFolder, history_of, no_history
from k8s_ucp.cli.editing.imports.listing import (
    listing,
    note_lines,
    preview_import,
    show_found,
)
from k8s_ucp.cli.editing.imports.selection import Candidate, Selection, by_advice
from k8s_ucp.cli.editing.imports.source import (
    ImportSource,
    builder,
    fetcher,
    filler,
    open_source,
    renderer,
)
from k8s_ucp.cli.editing.preview.checks import refuse_new_errors
from k8s_ucp.cli.editing.preview.granting import grant
from k8s_ucp.cli.editing.preview.notes import report_form
from k8s_ucp.cli.editing.topology_edit import edit_topology
from k8s_ucp.cli.topology_selection import declared_topology
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, NotImportable
from k8s_ucp.gitops.imports.trees import Origin

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.git.repository import Repository
    from k8s_ucp.topology import Topology


def import_apps(
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="REPO|PATH", help="URL of a git repository, or a folder.")
    ],
    app: Annotated[
        list[str] | None, option("--app", "NAME", "Name of an app to add; repeatable.")
    ] = None,
    every: Annotated[bool, option("--all", None, "Add every app that can be added.")] = False,
    skip_app: Annotated[
        list[str] | None,
        option("--skip-app", "NAME", "Name of an app to leave out; repeatable."),
    ] = None,
    rename: Annotated[
        list[str] | None,
        option(
            "--rename",
            "THEIRS=APP",
            "Name of an app that was found, and the name to give it here; repeatable.",
        ),
    ] = None,
    map_: Annotated[
        list[str] | None,
        option(
            "--map",
            "THEIRS=ENV",
            "Environment of the repository, and the environment of ucp.yaml to map it to; "
            "repeatable.",
            "--env",
        ),
    ] = None,
    skip_env: Annotated[
        list[str] | None,
        option(
            "--skip-env",
            "THEIRS",
            "Environment to leave out, or '*' for all that are not mapped; repeatable.",
        ),
    ] = None,
    revision: RevisionOption = None,
    auth: AuthOption = None,
    namespace: Annotated[
        list[str] | None, option("--namespace", "APP=NAME", "Namespace of an app; repeatable.")
    ] = None,
    also_namespace: Annotated[
        list[str] | None,
        option(
            "--also-namespace",
            "APP=NAME",
            "Additional namespace that an app may write to; repeatable.",
        ),
    ] = None,
    cluster_kind: Annotated[
        list[str] | None,
        option(
            "--cluster-kind",
            "APP=KIND",
            "Cluster-scoped kind that an app may create, such as ClusterRole; repeatable.",
        ),
    ] = None,
    from_outside: Annotated[
        list[str] | None,
        option(
            "--from-outside",
            "APP=KIND/NAME",
            "Secret or ConfigMap that something else creates in an app's namespace; repeatable.",
        ),
    ] = None,
    keep_history: Annotated[
        bool,
        option(
            "--keep-history", None, "Merge the commits that made the files into the app repository."
        ),
    ] = False,
    dry_run: Annotated[
        bool, option("--dry-run", None, "List the apps and every file without changing anything.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Find the apps of a GitOps repository, and add the chosen ones in one commit.

    Finds kustomize bases with overlays, charts, manifests, and what Applications, ApplicationSets
    and app-of-apps declare. Lists what can't be added, with the reason.
    """
    call = invocation(ctx)
    topology = declared_topology(call)
    environments = [each.name for each in topology.spec.environments]
    mapping = given_mapping(map_ or (), skip_env or (), environments)
    keys = {
        "clusterKinds": by_app(cluster_kind or (), "--cluster-kind"),
        "fromOutside": by_app(from_outside or (), "--from-outside"),
        "namespaces": by_app(also_namespace or (), "--also-namespace"),
        "namespace": by_app(namespace or (), "--namespace"),
    }
    opened = open_source(call, topology, source, revision, auth)
    origin = Origin(folder=source) if opened.folder else Origin(url=opened.url, revision=revision)
    found = _detect(call, topology, opened, [*environments, *mapping], origin)
    names = given_names(found, rename or ())
    found = noting_unknown(found, mapping)
    found = without_taken(renamed(found, names), topology)
    if output is Output.table:
        show_found(call, found)
    refuse_unknown(found, keys)
    wanted = tuple(names.get(each, each) for each in app or ())
    left_out = [names.get(each, each) for each in skip_app or ()]
    picked = pick_apps(found, wanted, left_out, every=every, dry_run=dry_run)
    mapping = complete_mapping(
        picked, environments, mapping, skip_others=OTHERS in (skip_env or ())
    )
    answers = ImportAnswers(environments, mapping, keys, auth)
    with contextlib.ExitStack() as undone:
        folder = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="ucp-import-")))
        selection = Selection(found, explicit=bool(app))
        candidates = _candidates(selection, picked, opened, answers, folder)
        fetch_apps(call, topology, selection, candidates, opened.folder_tree, undone)
        edit = adding(selection)
        undone.enter_context(selection.proposing_others())
        inspection = build_apps(call, edit, selection, origin)
        _report(call, selection, edit, forms=not dry_run or output is Output.table)
        if dry_run:
            refusals = preview_import(call, edit, selection, inspection, output)
            # The copies made for the preview are deleted.
            raise typer.Exit(refusals.exit_code)
        grant(call, edit, selection.items, inspection, named=True)
        refuse_new_errors(call, edit, inspection.app_objects)
        history: Callable[[Repository], Sequence[str]] = no_history
        if keep_history:
            moved = _moved(selection, environments)
            history = history_of(call, topology, opened, moved, folder / "history")
        added = [*selection.choices]
        subject = f"Add {len(added)} apps" if len(added) > 3 else f"Add {', '.join(added)}"
        topology = edit_topology(call, edit, subject=subject, merged_into_apps=history)
        if output is not Output.table:
            call.console.data(notation({**listing(selection.found), "added": added}, output))
    call.console.say(f"added {', '.join(added)}; {how_far(call, topology, 'ucp status --watch')}")


def _detect(
    call: Invocation,
    topology: Topology,
    opened: ImportSource,
    environments: Sequence[str],
    origin: Origin,
) -> Discovery:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.imports.detection import ImportTools, detect

    return detect(
        opened.folder_tree,
        title=opened.title,
        urls=opened.urls,
        environments=environments,
        origin=origin,
        clusters=[each.name for each in topology.spec.environments],
        tools=ImportTools(
            render=renderer(opened.folder_tree, lambda: pinned_helm(call, topology)),
            build=builder(kustomize),
            fill_go=filler(lambda: pinned_helm(call, topology)),
            fetch=fetcher(call, topology),
        ),
    )


def _candidates(
    selection: Selection,
    picked: Sequence[DiscoveredApp],
    opened: ImportSource,
    answers: ImportAnswers,
    folder: Path,
) -> list[Candidate]:
    """What to add of the picked apps. Apps that can't be added are left out."""
    found = []
    for finding in picked:
        try:
            found.append(candidate(finding, opened, answers, folder))
        except (NotImportable, UcpError) as error:
            selection.leave_out(finding, error)
    return found


def _report(call: Invocation, selection: Selection, edit: Edit, *, forms: bool) -> None:
    """Print why apps are left out, and notes of the others. forms: and the form of each.

    Raises UsageError if no app is left.
    """
    for text in by_advice(selection.reasons()):
        call.console.warn(text)
    choices = selection.choices.items()
    notes = ((name, each) for name, choice in choices for each in choice.candidate.request.notes)
    for line in note_lines(notes):
        call.console.say(line)
    for name in selection.choices if forms else ():
        report_form(call, edit, name)


def _moved(selection: Selection, environments: Sequence[str]) -> list[MovedFolder]:
    """The folders in which `gitops/render/user_manifests.py` writes the files of each app."""
    found = []
    for each in (choice.candidate for choice in selection.choices.values()):
        if each.finding.remote is None:
            targets = [f"apps/{each.name}/base"]
            if each.finding.form != "kustomize":
                targets = [f"apps/{each.name}/overlays/{name}" for name in environments]
            found.append(MovedFolder(each.request.path, each.request.folders, tuple(targets)))
    return found
