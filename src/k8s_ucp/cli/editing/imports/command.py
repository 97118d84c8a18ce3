"""`ucp app import`: adds the apps of an existing GitOps repository, in one commit."""

from __future__ import annotations

import contextlib
import json
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k8s_ucp.cli.command import Invocation, Output, OutputOption, invocation, notation, option
from k8s_ucp.cli.console import table
from k8s_ucp.cli.editing.app_adding import (
    AppFlags,
    AuthOption,
    RevisionOption,
    item_of,
    parsed_item,
    read_item,
    unpinned_chart,
)
from k8s_ucp.cli.editing.chart_pins import (
    Pin,
    UnpinnedChart,
    dependencies_at_once,
    pinned_at_once,
)
from k8s_ucp.cli.editing.deletion import how_far
from k8s_ucp.cli.editing.imports.history import MovedFolder, history_of, no_history
from k8s_ucp.cli.editing.imports.selection import ChosenApp, Selection, refused
from k8s_ucp.cli.editing.imports.source import (
    ImportSource,
    builder,
    fetcher,
    filler,
    open_source,
    renderer,
)
from k8s_ucp.cli.editing.preview.checks import refuse_new_errors
from k8s_ucp.cli.editing.preview.dry_run import Refusals, changes
from k8s_ucp.cli.editing.preview.granting import Inspection, grant, inspect_apps
from k8s_ucp.cli.editing.preview.notes import report_form
from k8s_ucp.cli.editing.topology_edit import edit_topology
from k8s_ucp.cli.topology_selection import declared_topology
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.gitops.imports.environment_mapping import ImportRequest, mapped, request_of, unmapped
from k8s_ucp.gitops.imports.findings import (
    DiscoveredApp,
    Discovery,
    NotImportable,
    RefusedApp,
)
from k8s_ucp.gitops.imports.trees import Origin
from k8s_ucp.gitops.manifests.chart_source import write_files
from k8s_ucp.topology import parse
from k8s_ucp.topology.edit import with_item
from k8s_ucp.topology.problems import some
from k8s_ucp.topology.rules.names import closed_to_apps, taken_namespace

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.git.repository import Repository
    from k8s_ucp.topology import Topology

_NAMED = 12
"""Maximum number of apps or environments that a message names."""
_ALIKE = 3
"""Maximum number of apps that are listed one by one with the same reason why they are not added."""
_OTHERS = "*"
_LEFT_OUT = ""
"""Answer for an environment that is left out."""


def import_apps(
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="REPO|PATH", help="URL of a git repository, or a folder.")
    ],
    app: Annotated[
        list[str] | None, option("--app", "NAME", "Name of an app to add; repeatable.")
    ] = None,
    every: Annotated[bool, option("--all", None, "Add every app that can be added.")] = False,
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
    ours = [each.name for each in topology.spec.environments]
    skips_others = _OTHERS in (skip_env or ())
    mapping = _mapping(map_ or (), [each for each in skip_env or () if each != _OTHERS], ours)
    flags = {
        "clusterKinds": _by_app(cluster_kind or (), "--cluster-kind"),
        "fromOutside": _by_app(from_outside or (), "--from-outside"),
        "namespaces": _by_app(also_namespace or (), "--also-namespace"),
        "namespace": _by_app(namespace or (), "--namespace"),
    }
    opened = open_source(call, topology, source, revision, auth)
    origin = Origin(folder=source) if opened.folder else Origin(url=opened.url, revision=revision)
    found = _detect(call, topology, opened, [*ours, *mapping], origin)
    renamed = _names(found, rename or ())
    found = _without_taken(_renamed(found, renamed), topology)
    if output is Output.table:
        _show(call, found)
    picked = _picked(
        found, tuple(renamed.get(each, each) for each in app or ()), every=every, dry_run=dry_run
    )
    if skips_others:
        mapping |= dict.fromkeys(unmapped(picked, ours, mapping))
    mapping = _ask_environments(picked, ours, mapping)
    with contextlib.ExitStack() as undone:
        folder = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="ucp-import-")))
        selection = Selection(found, explicit=bool(app))
        ready = []
        for finding in picked:
            try:
                request = request_of(
                    finding,
                    opened.place,
                    mapped(mapping, ours, finding.environments),
                    ours,
                    pinned=opened.folder is None,
                )
                wanted = _wanted(finding, request, opened, folder, _more(finding, flags), auth)
                ready.append((finding, request, wanted))
            except (NotImportable, UcpError) as error:
                selection.leave_out(finding, error)
        pin = undone.enter_context(
            pinned_at_once(call, topology, _charts(call, topology, [each[2] for each in ready]))
        )
        failures = dependencies_at_once(call, topology, opened.place, _local_charts(ready))
        for finding, request, wanted in ready:
            try:
                if failed := failures.get(finding.name):
                    raise failed
                _choose(call, topology, selection, finding, request, wanted, pin, undone)
            except (NotImportable, UcpError) as error:
                selection.leave_out(finding, error)

        edit = _edit(selection)
        inspection = _inspect(call, edit, selection, origin)
        for line, advice in selection.reasons().items():
            call.console.warn(f"{line}\n  next: {advice}")
        for choice in selection.choices.values():
            for note in choice.request.notes:
                call.console.say(f"note: {choice.finding.name}: {note}")
        for name in selection.choices if not dry_run or output is Output.table else ():
            report_form(call, edit, name)
        if dry_run:
            refusals = _preview(call, edit, selection, inspection, output)
            # The copies made for the preview are deleted.
            raise typer.Exit(refusals.exit_code)
        grant(call, edit, selection.items, inspection, named=True)
        refuse_new_errors(call, edit)
        parents: Callable[[Repository], Sequence[str]] = no_history
        if keep_history:
            moved = [
                _moved(each.finding, each.request, ours)
                for each in selection.choices.values()
                if each.finding.remote is None
            ]
            parents = history_of(call, topology, opened, moved, folder / "history")
        names = [*selection.choices]
        subject = f"Add {len(names)} apps" if len(names) > 3 else f"Add {', '.join(names)}"
        topology = edit_topology(call, edit, subject=subject, merged_into_apps=parents)
        if output is not Output.table:
            call.console.data(notation({**_data(selection.found), "added": names}, output))
    listed = ", ".join(names)
    call.console.say(f"added {listed}; {how_far(call, topology, 'ucp status --watch')}")


def _edit(selection: Selection) -> Edit:
    """Adds the items of a selection to ucp.yaml. With many, that takes long: it keeps the result.

    Flags and answers change the items in between.
    """
    kept: dict[tuple[str, Path, str], tuple[str, Topology]] = {}

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        key = text, file, json.dumps(list(selection.items.values()))
        if key not in kept:
            edited = text, parse(text, file)
            for each in selection.items.values():
                edited = with_item(edited[0], "apps", each, file)
            kept.clear()
            kept[key] = edited
        return kept[key]

    return edit


def _choose(
    call: Invocation,
    topology: Topology,
    selection: Selection,
    finding: DiscoveredApp,
    request: ImportRequest,
    wanted: AppFlags,
    pin: Pin,
    undone: contextlib.ExitStack,
) -> None:
    """Fetch an app, and add it to the selection. Raises UcpError.

    undone: removes its copies if the import fails.
    """
    with contextlib.ExitStack() as copies:
        item = copies.enter_context(item_of(call, topology, wanted, pin))
        read_item(call, topology, item)
        kept = copies.pop_all()
    undone.push(kept)
    selection.choices[finding.name] = ChosenApp(finding, request, wanted, item, kept)


def _charts(call: Invocation, topology: Topology, apps: Sequence[AppFlags]) -> list[UnpinnedChart]:
    """The charts of apps; what is wrong with one is said when its turn comes."""
    found = []
    for each in apps:
        with contextlib.suppress(UcpError):
            found += [unpinned_chart(call, topology, each)] if each.chart else []
    return found


def _local_charts(ready: Sequence[tuple[DiscoveredApp, ImportRequest, AppFlags]]) -> dict[str, str]:
    """{app: folder of its chart} of those in the repository itself."""
    return {
        finding.name: request.path
        for finding, request, _ in ready
        if finding.form == "helm" and finding.remote is None
    }


def _inspect(call: Invocation, edit: Edit, selection: Selection, origin: Origin) -> Inspection:
    """Build all apps on all environments. Those that can't be added are left out of the selection.

    Raises UcpError for an app that the user named and that can't be built, with the flags that add
    the others.
    """
    inspection = inspect_apps(call, edit, [*selection.choices])
    for name, error in inspection.failures.items():
        choice = selection.choices[name]
        if error.next and choice.finding.remote is None:
            # `ucp app add` has flags for values, which an import doesn't have.
            command = origin.command(name, choice.request.path)
            again = "run the command again with --values"
            error.next = error.next.replace(again, f"{command} --values")
        if selection.explicit:
            raise _with_others(error, [each for each in selection.choices if each != name])
        selection.leave_out(choice.finding, error)
    for name, problem in inspection.forbidden.items():
        if not selection.explicit:
            selection.leave_out(selection.choices[name].finding, problem)
    return inspection


def _with_others(error: UcpError, others: Sequence[str]) -> UcpError:
    """The error of one app, with the flags that add the others."""
    if others:
        flags = " ".join(f"--app {each}" for each in others[:_NAMED])
        more = " and the others" if len(others) > _NAMED else ""
        error.next = f"{error.next}; or leave it out: {flags}{more}"
    return error


def _moved(finding: DiscoveredApp, request: ImportRequest, ours: Sequence[str]) -> MovedFolder:
    """The folders in which `gitops/render/user_manifests.py` writes the files."""
    targets = [f"apps/{finding.name}/base"]
    if finding.form != "kustomize":
        targets = [f"apps/{finding.name}/overlays/{each}" for each in ours]
    return MovedFolder(request.path, request.folders, tuple(targets))


def _detect(
    call: Invocation,
    topology: Topology,
    opened: ImportSource,
    environments: Sequence[str],
    origin: Origin,
) -> Discovery:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.imports.detection import detect

    return detect(
        opened.place,
        title=opened.title,
        urls=opened.urls,
        environments=environments,
        revision=origin.revision,
        origin=origin,
        render=renderer(opened.place, lambda: pinned_helm(call, topology)),
        fetch=fetcher(call, topology),
        clusters=[each.name for each in topology.spec.environments],
        build=builder(kustomize),
        fill_go=filler(lambda: pinned_helm(call, topology)),
    )


def _names(found: Discovery, words: Sequence[str]) -> dict[str, str]:
    """{name of an app that was found: its new name}. Raises UsageError."""
    names: dict[str, str] = {}
    known = [each.name for each in found.findings]
    for word in words:
        image, equals, name = word.partition("=")
        if not equals or image not in known:
            raise UsageError(
                f"--rename {word} is not valid; use THEIRS=APP with an app of the repository: "
                f"{some(known)}"
            )
        if name in known or name in names.values():
            raise UsageError(f"--rename {word}: another app is called {name}")
        names[image] = parsed_item({"name": name, "image": "any"}).name
    return names


def _renamed(found: Discovery, names: Mapping[str, str]) -> Discovery:
    findings = (
        replace(each, name=names[each.name]) if each.name in names else each
        for each in found.findings
    )
    return replace(found, findings=tuple(sorted(findings, key=lambda each: each.name)))


def _without_taken(found: Discovery, topology: Topology) -> Discovery:
    """Refuse apps whose names are already in use."""
    existing = {each.name for each in topology.spec.apps}
    for each in found.findings:
        reason = taken_namespace(each.name)
        if each.name in existing:
            reason = "ucp.yaml has an app of this name"
        if reason:
            found = refused(
                found,
                each,
                NotImportable(
                    reason, f"run the command again with --rename {each.name}={each.name}-app"
                ),
            )
    return found


def _mapping(
    maps: Sequence[str], skipped: Sequence[str], ours: Sequence[str]
) -> dict[str, str | None]:
    """{environment of the repository: ours, or None to leave it out}. Raises UsageError."""
    found: dict[str, str | None] = dict.fromkeys(skipped)
    for word in maps:
        environment, equals, name = word.partition("=")
        if not equals or not environment or name not in ours:
            raise UsageError(
                f"--map {word} is not valid; use THEIRS=ENV with an environment of ucp.yaml: "
                f"{', '.join(ours)}"
            )
        found[environment] = name
    return found


def _by_app(words: Sequence[str], flag: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{flag} {word} is not valid", next=f"{flag} APP={word}")
        found.setdefault(name, []).append(value)
    return found


def _picked(
    found: Discovery, names: tuple[str, ...], *, every: bool, dry_run: bool
) -> list[DiscoveredApp]:
    """The selected apps. Raises UsageError."""
    from k8s_ucp.cli.questions import can_ask, choose_many

    known = {each.name: each for each in found.findings}
    for name in names:
        if name not in known:
            why = next((each for each in found.refusals if each.name == name), None)
            if why:
                raise UsageError(f"{name} can't be added: {why.reason}", next=why.advice)
            raise UsageError(f"unknown app {name}; found: {', '.join(known) or 'none'}")
    if not known:
        advice = (each.advice for each in found.refusals if "ucp app add" in each.advice)
        raise UsageError(
            "no app was found that can be added",
            next=next(
                advice, "ucp app add NAME IMAGE:TAG for each image, or ucp app add NAME FOLDER"
            ),
        )
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    if every or dry_run:
        return list(known.values())
    if not can_ask():
        raise UsageError(
            "no app is selected", next="run the command again with --all or --app NAME"
        )
    chosen = choose_many(
        "Apps to add:", {name: f"{name}: {each.form}, {each.where}" for name, each in known.items()}
    )
    if not chosen:
        raise UsageError("no app is selected; nothing was changed")
    return [known[name] for name in chosen]


def _ask_environments(
    picked: Sequence[DiscoveredApp], ours: Sequence[str], mapping: dict[str, str | None]
) -> dict[str, str | None]:
    """The mapping, completed by answers. Raises UsageError if a question is impossible."""
    from k8s_ucp.cli.questions import can_ask, choose_one

    missing = unmapped(picked, ours, mapping)
    beside = {
        name: {one for each in picked if name in each.environments for one in each.environments}
        for name in missing
    }
    if missing and not can_ask():
        flags = proposed_flags(missing, ours, mapping, beside)
        shown = " ".join(flags[:_NAMED]) + (" and so on" if len(flags) > _NAMED else "")
        fewer = (
            "; or leave out all others with --skip-env '*', or import single apps with --app NAME"
        )
        fewer = fewer if len(flags) > _NAMED else ""
        raise UsageError(
            f"ucp.yaml has no environment {some_of(missing, _NAMED)}; it has {', '.join(ours)}",
            next=f"map them: {shown} (or --skip-env NAME){fewer}",
        )
    found = dict(mapping)
    for each in missing:
        taken = {found.get(name) for name in beside[each]}
        free = [name for name in ours if name not in taken]
        answer = choose_one(
            f"Environment of ucp.yaml for '{each}':",
            {**{name: name for name in free}, _LEFT_OUT: "none: leave it out"},
        )
        found[each] = answer or None
    return found


def proposed_flags(
    missing: Sequence[str],
    ours: Sequence[str],
    mapping: Mapping[str, str | None],
    beside: Mapping[str, Collection[str]],
) -> list[str]:
    """Flags that map environments with similar names; each of ours is used once.

    beside: environments of the apps that have one, by its name; ours among these are not used for
    it.
    """
    free = [each for each in ours if each not in mapping.values()]
    alike: dict[str, str] = {}
    for name in missing:
        open_ = [each for each in free if each not in beside.get(name, ())]
        same = (each for each in open_ if each.startswith(name[:4]) or name.startswith(each))
        if here := next(same, None):
            free.remove(here)
            alike[name] = here
    left = {name: [each for each in free if each not in beside.get(name, ())] for name in missing}
    said = {name: shlex.quote(name) for name in missing}
    rest = {
        name: f"--map {said[name]}=ENV" if left[name] else f"--skip-env {said[name]}"
        for name in missing
    }
    return [
        f"--map {said[name]}={alike[name]}" if name in alike else rest[name] for name in missing
    ]


def _more(finding: DiscoveredApp, flags: Mapping[str, Mapping[str, list[str]]]) -> dict[str, Any]:
    """Keys of the item that don't depend on the place of the files."""
    given = {key: words[finding.name] for key, words in flags.items() if finding.name in words}
    namespace = (given.pop("namespace", None) or [finding.namespace or ""])[-1]
    if namespace == finding.name or closed_to_apps(namespace):
        namespace = ""
    return {**given, "namespace": namespace}


def _wanted(
    finding: DiscoveredApp,
    request: ImportRequest,
    opened: ImportSource,
    folder: Path,
    more: Mapping[str, Any],
    auth: str | None,
) -> AppFlags:
    """Flags for one app. folder: for files that are to be copied."""
    inside = {here: name for here, name in request.values.items() if isinstance(name, str)}
    values = []
    for here, content in request.values.items():
        if isinstance(content, bytes):
            write_files(folder / "values" / finding.name, {f"values-{here}.yaml": content})
            values.append(f"{here}={folder / 'values' / finding.name / f'values-{here}.yaml'}")
    common = AppFlags(
        name=finding.name,
        values=tuple(values),
        overlays=tuple(f"{here}={each}" for here, each in request.overlays.items()),
        more={**more, "values": inside},
    )
    if remote := finding.remote:
        if remote.chart:
            version = request.version if finding.versions else remote.revision
            return replace(common, chart=remote.chart, repo=remote.url, version=version)
        if finding.overlays:
            common = replace(common, more={**common.more, "as": finding.form})
        return replace(common, repo=remote.url, path=request.path or None, revision=remote.revision)
    if opened.folder is None:
        return replace(
            common,
            repo=opened.url,
            path=request.path or None,
            revision=opened.commit,
            auth=auth,
            more={**common.more, "as": finding.form},
        )
    if request.files is not None:
        source = folder / "apps" / finding.name
        write_files(source, request.files)
        return replace(common, path=str(source))
    as_ = finding.form if finding.form == "helm" else None
    return replace(
        common,
        path=str(opened.folder / request.path),
        more={**common.more, "as": as_},
        repository=opened.folder,
    )


def _show(call: Invocation, found: Discovery) -> None:
    rows = [
        [each.name, _form(each), ", ".join(each.environments), each.namespace, each.where]
        for each in found.findings
    ]
    if rows:
        columns = ("app", "form", "environments", "namespace", "from")
        call.console.data(table(columns, rows, width=call.console.width))
    for note in found.notes:
        call.console.say(f"note: {note}")
    for finding in found.findings:
        for note in finding.notes:
            call.console.say(f"note: {finding.name}: {note}")
    refused = refusal_rows(found.refusals)
    if refused:
        heads = ("not added", "from", "reason", "what to do")
        call.console.data(("\n" if rows else "") + table(heads, refused))


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


def _data(found: Discovery) -> dict[str, Any]:
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


def _preview(
    call: Invocation, edit: Edit, selection: Selection, inspection: Inspection, output: Output
) -> Refusals:
    files, refusals = changes(call, edit, [*selection.choices], inspection)
    if output is not Output.table:
        listed = [{"file": file, "change": what} for file, what in files]
        data = {**_data(selection.found), "files": listed, "refusedByCheck": refusals.reasons}
        call.console.data(notation(data, output))
        return refusals
    call.console.data("\n".join(["", *(f"# {file} ({what})" for file, what in files)]))
    for each in refusals.reasons:
        call.console.say(f"would be refused: {each}")
    return refusals
