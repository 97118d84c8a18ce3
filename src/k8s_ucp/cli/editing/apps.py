"""`ucp app`: lists, adds, imports and removes apps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k8s_ucp.cli.command import (
    Invocation,
    ListOutput,
    ListOutputOption,
    Output,
    PlanOption,
    PlanOutputOption,
    YesOption,
    declare,
    examples,
    invocation,
    plan_invocation,
)
from k8s_ucp.cli.editing.adding.app_source import name_in, with_source, with_split_image
from k8s_ucp.cli.editing.adding.copies import COPIES
from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.cli.editing.adding.items import item_of
from k8s_ucp.cli.editing.adding.options import (
    AlsoNamespaceOption,
    AuthOption,
    ChartOption,
    ClusterKindOption,
    DatabaseOption,
    DatabaseProviderOption,
    DryRunOption,
    FormOption,
    FromOutsideOption,
    HostOption,
    ImageOption,
    NameArgument,
    NamespaceOption,
    OverlayOption,
    PathOption,
    PortOption,
    ReplicasOption,
    RepoOption,
    RevisionOption,
    SourceArgument,
    TagOption,
    ValuesOption,
    VersionOption,
)
from k8s_ucp.cli.editing.deletion import (
    how_far,
    refuse_lost_core,
    remove_applications,
    require_core,
)
from k8s_ucp.cli.editing.imports.command import import_apps
from k8s_ucp.cli.editing.interrupted_removal import half_removed
from k8s_ucp.cli.editing.kind_deletion import delete_kinds, kinds_of_app, merged_kinds
from k8s_ucp.cli.editing.namespace_deletion import delete_namespaces
from k8s_ucp.cli.editing.preview.checks import refuse_new_errors
from k8s_ucp.cli.editing.preview.dry_run import preview
from k8s_ucp.cli.editing.preview.granting import grant, inspect_apps
from k8s_ucp.cli.editing.preview.image_versions import mutable_tag_advice
from k8s_ucp.cli.editing.preview.notes import print_settings_left_out, report_form
from k8s_ucp.cli.editing.removal_plan import preview_app
from k8s_ucp.cli.editing.topology_edit import (
    as_it_is,
    confirm_removal,
    edit_topology,
    find_tip,
    in_parts,
    only_edit,
    plan_edit,
    pointing_to_start,
    shown_step,
)
from k8s_ucp.cli.topology_selection import app_names, declared_file, declared_topology
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import UsageError, command_line
from k8s_ucp.gitops.promotion.message import shorten_digests
from k8s_ucp.gitops.publish.merge import Scope
from k8s_ucp.inspect.overlay_versions import brief, holds_in, on_hold, versions_in
from k8s_ucp.topology import APPS, App, Topology, parse, read_topology
from k8s_ucp.topology.edit import with_item, without_item
from k8s_ucp.topology.parts import APP_FORMS, DEFAULT_PORT
from k8s_ucp.topology.placement import proposed_database_provider
from k8s_ucp.topology.rules.names import taken_namespace

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.topology_edit import Edit

app = declare("List, add and remove apps.")


@app.command("list", short_help="List apps and their versions per environment.")
def show(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the apps with their versions in each environment, as in the app repository."""
    call = invocation(ctx)
    topology = declared_topology(call)
    versions, holds = _versions(call, topology)
    known = {each.name: each for each in topology.spec.apps}
    data: list[dict[str, Any]] = []
    for name in [*known, *sorted(versions.keys() - known.keys())]:
        found = known.get(name)
        data.append(
            {
                "name": name,
                "from": _origin(found) if found else None,
                "hosts": list(found.hosts) if found else [],
                "database": found.database if found else None,
                "versions": versions.get(name, {}),
                "held": holds.get(name, {}),
                "declared": found is not None,
            }
        )
    environments = [each.name for each in topology.spec.environments]
    rows = [
        [
            row["name"],
            row["from"] or "in the repository only, not in ucp.yaml",
            *(
                _shown(row["versions"].get(name), row["held"].get(name, []))
                for name in environments
            ),
        ]
        for row in data
    ]
    none = "no apps; add one: ucp app add NAME FOLDER"
    call.show_list(output, data, ("app", "from", *environments), rows, none=none)


@app.command(
    short_help="Add an app to all environments.",
    epilog=examples(
        "ucp app add web example.org/web:1.2.3",
        "ucp app add web deploy/ --dry-run",
        "ucp app add web https://git.example.org/web.git --path deploy",
        "ucp app add web oci://registry.example.org/charts/web",
    ),
)
def add(
    ctx: typer.Context,
    name: NameArgument,
    source: SourceArgument = None,
    image: ImageOption = None,
    tag: TagOption = None,
    path: PathOption = None,
    repo: RepoOption = None,
    revision: RevisionOption = None,
    chart: ChartOption = None,
    version: VersionOption = None,
    form: FormOption = None,
    values: ValuesOption = None,
    overlay: OverlayOption = None,
    namespace: NamespaceOption = None,
    also_namespace: AlsoNamespaceOption = None,
    cluster_kind: ClusterKindOption = None,
    from_outside: FromOutsideOption = None,
    auth: AuthOption = None,
    host: HostOption = None,
    replicas: ReplicasOption = None,
    port: PortOption = None,
    database: DatabaseOption = None,
    database_provider: DatabaseProviderOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Add an app to ucp.yaml and the app repository, and push. It runs on every environment.

    Takes an image, a folder or a git repository with a kustomization, a Helm chart, plain manifests
    or jsonnet, or a chart from a Helm repository or an OCI registry.
    """
    call = invocation(ctx)
    if form is not None and form not in APP_FORMS:
        raise UsageError(f"--as {form} is not valid; valid values: {', '.join(APP_FORMS)}")
    origin = {
        "image": image,
        "tag": tag,
        "path": path,
        "repo": repo,
        "revision": revision,
        "chart": chart,
        "version": version,
    }
    if source is not None:
        origin = with_source(name, source, origin)
    origin = with_split_image(name, origin)
    keys: dict[str, Any] = {
        "image": origin["image"],
        "tag": origin["tag"],
        "as": form,
        "namespace": namespace,
        "namespaces": list(also_namespace or ()),
        "clusterKinds": list(cluster_kind or ()),
        "fromOutside": list(from_outside or ()),
        "hosts": list(host or ()),
        "replicas": replicas,
        "port": port,
        "database": database,
    }
    if not any(origin[each] for each in ("image", "path", "repo", "chart")):
        keys = _of_built_in_app(name, keys)
    if database_provider and not keys["database"]:
        raise UsageError("--database-provider needs --database", next="add --database NAME")
    if auth and not (origin["repo"] or origin["chart"]):
        raise UsageError(
            f"--auth {auth} is only for a git repository or a chart",
            next="leave out --auth; for images of a private registry: "
            "docs/walkthroughs/private-registry-credentials.md",
        )
    flags = AppFlags(
        name=name,
        path=origin["path"],
        repo=origin["repo"],
        revision=origin["revision"],
        chart=origin["chart"],
        version=origin["version"],
        auth=auth,
        values=tuple(values or ()),
        overlays=tuple(overlay or ()),
        more=keys,
    )
    _add(call, flags, database_provider, dry_run=dry_run)
    if origin["image"] and port is None and not origin["path"] and not origin["repo"]:
        call.console.say(
            f"{name}: its container must listen on port {DEFAULT_PORT}, its variable PORT\n"
            f"  next: for another port, set `port` of {name} in ucp.yaml, then ucp start"
        )


def _add(
    call: Invocation, flags: AppFlags, database_provider: str | None, *, dry_run: bool
) -> None:
    """Add the app that the flags describe, or print what that would do."""
    name, topology = flags.name, declared_topology(call)
    with pointing_to_start(call, topology):
        _refuse_taken(call, topology, name)
    # Two dry runs of one name would share the copy of a source that is elsewhere.
    waiting = only_edit(call.workspace.root, call.console.say) if dry_run else nullcontext()
    with waiting, item_of(call, topology, flags) as item:
        edit = _adding(item, database_provider)
        print_settings_left_out(call, topology, flags, item)
        if dry_run:
            refusals = preview(call, edit, name)
            # The copies made for the preview are deleted.
            raise typer.Exit(refusals.exit_code)
        report_form(call, edit, name)
        inspection = inspect_apps(call, edit, [name])
        grant(call, edit, {name: item}, inspection)
        refuse_new_errors(call, edit, inspection.app_objects)
        topology = edit_topology(call, edit, subject=f"Add the app {name}")
    call.console.say(f"app {name} added; {how_far(call, topology, 'ucp status --watch')}")
    if advice := mutable_tag_advice(item, [each.name for each in topology.spec.environments]):
        call.console.say(advice)


def _of_built_in_app(name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of the item, completed by those of a built-in app. Raises UsageError."""
    if called := name_in(name):
        raise UsageError(
            f"{name!r} is not a valid name of an app",
            next=command_line("ucp", "app", "add", called, name),
        )
    if name not in APPS:
        raise UsageError(
            f"unknown app '{name}'; built-in apps: {', '.join(APPS)}",
            next=f"ucp app add {name} DIR (or FILE, URL, oci://…/CHART, IMAGE:TAG)",
        )
    known = APPS[name].model_dump(by_alias=True, exclude_unset=True)
    found = {key: keys.get(key) or known.get(key) for key in {**known, **keys} if key != "name"}
    return {**found, "hosts": list(found["hosts"] or ())}


def _refuse_taken(call: Invocation, topology: Topology, name: str) -> None:
    if name in {each.name for each in topology.spec.apps}:
        raise UsageError(
            f"'{name}' already exists in apps of ucp.yaml",
            next=f"choose another name, or edit {declared_file(call)}; a new version: "
            f"ucp promote {name} --env ENV --tag TAG",
        )
    if taken := taken_namespace(name):
        raise UsageError(taken, next=f"choose another name, such as my-{name}")


def _adding(item: Mapping[str, Any], database_provider: str | None) -> Edit:
    """Adds an app to ucp.yaml, and its database unless it is there already."""

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        spec = parse(text, file).spec
        needed, known = item.get("database"), {each.name for each in spec.databases}
        if needed and needed not in known:
            proposed = proposed_database_provider(spec.clouds, spec.environments)
            new = {"name": needed, "provider": database_provider or proposed}
            text, _ = with_item(text, "databases", new, file)
        return with_item(text, "apps", item, file)

    return edit


app.command(
    "import",
    short_help="Add the apps of an existing GitOps repository.",
    epilog=examples(
        "ucp app import https://git.example.org/gitops.git --dry-run",
        "ucp app import theirs --all --map staging=stage --map production=prod",
    ),
)(import_apps)


@app.command(
    short_help="Remove an app from every environment.",
    epilog=examples(
        "ucp app remove web --plan",
        "ucp app remove web",
    ),
)
def remove(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the app.", autocompletion=app_names)
    ],
    yes: YesOption = False,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Remove an app from ucp.yaml, the app repository and all environments."""
    call = plan_invocation(ctx, output, plan=plan)
    before, again = declared_topology(call), f"ucp app remove {name}"
    refuse_lost_core(call, before, again)
    with in_parts(call, before, f"app {name}", again) as parts:
        _remove(call, name, before, parts, yes=yes, plan=plan, output=output)


def _remove(
    call: Invocation,
    name: str,
    before: Topology,
    parts: Journal,
    *,
    yes: bool,
    plan: bool,
    output: Output,
) -> None:
    declared = next((each for each in before.spec.apps if each.name == name), None)
    begun = parts.resumed is not None
    interrupted = None if declared else half_removed(call, before, name, begun=begun)
    removed_app = declared or interrupted

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        edited = as_it_is(text, file) if interrupted else without_item(text, "apps", name, file)
        require_core(call, edited[1], name)
        return edited

    removed = Scope(frozenset(), frozenset([name]))
    if plan:
        after = {"delete-applications": preview_app(call, before, name, removed_app)}
        plan_edit(call, edit, output, removed=removed, after=after)
        return
    # Refuse an invalid removal before asking.
    edit(read_topology(file := declared_file(call)), file)
    confirm_removal(call, before, f"the app {name} from every environment", yes=yes)
    if interrupted:
        call.console.say(f"{name} is no longer in ucp.yaml: its removal is continued")
    # Only its Applications list them, and an interrupted run may have deleted these already.
    kinds = merged_kinds(
        parts.data.get("kinds", {}), kinds_of_app(call, before, name) if removed_app else {}
    )
    parts.keep(kinds={where: sorted(found) for where, found in kinds.items()})
    departing = (interrupted,) if interrupted else ()
    subject = f"Remove the app {name}"
    topology = edit_topology(
        call, edit, subject=subject, removed=removed, departing=departing, part_of=parts
    )
    with shown_step(
        call, parts, f"Delete the Applications of {name}", "delete-applications"
    ) as report:
        deleted = remove_applications(call, topology, name, report)
    if deleted:
        # The project was kept until its Applications were deleted.
        subject = f"Remove the project of the app {name}"
        edit_topology(call, as_it_is, subject=subject, part_of=parts)
        with shown_step(
            call, parts, f"Delete the CRDs and namespaces of {name}", "delete-leftovers"
        ):
            delete_kinds(call, topology, kinds)
            if removed_app:
                delete_namespaces(call, topology, removed_app)
    copy = f"{COPIES}/{name}"
    kept = f"; its files stay in {copy}" if (call.workspace.root / copy).exists() else ""
    call.console.say(f"app {name} removed{kept}")
    database = removed_app and removed_app.database
    if database and all(each.database != database for each in topology.spec.apps):
        call.console.say(f"note: its database {database} stays in ucp.yaml")


def _origin(app: App) -> str | None:
    if app.chart:
        return f"{app.chart.repo}/{app.chart.name} {app.chart.version}"
    return app.repo or app.path or app.image


def _versions(
    call: Invocation, topology: Topology
) -> tuple[dict[str, dict[str, list[str]]], dict[str, dict[str, list[str]]]]:
    """Images with their versions, and versions on hold, at the tip of the app repository.

    Both are {app: {environment: names}}.
    """
    found = find_tip(call, topology, call.workspace.gitops(topology.name).apps)
    if found is None:
        return {}, {}
    repository, commit = found
    files = repository.read(commit, "apps") if commit else {}
    holds: dict[str, dict[str, list[str]]] = {}
    for (app, environment), held in holds_in(files).items():
        holds.setdefault(app, {})[environment] = held
    return versions_in(files), holds


def _shown(versions: list[str] | None, held: list[str]) -> str:
    shown = "" if versions is None else brief(versions)
    return shorten_digests(f"{shown} ({on_hold(held)})" if held else shown)
