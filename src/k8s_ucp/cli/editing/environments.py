"""`ucp env`: lists, adds and removes environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import (
    Invocation,
    ListOutput,
    ListOutputOption,
    Output,
    OutputOption,
    PlanOption,
    PlanOutputOption,
    YesOption,
    declare,
    examples,
    invocation,
    option,
    plan_invocation,
)
from k8s_ucp.cli.editing.deletion import (
    await_cluster_deleted,
    clusters_first,
    deletion_of,
    how_far,
    refuse_lost_core,
    refuse_protected,
    refuse_unattended,
)
from k8s_ucp.cli.editing.removal_plan import preview_environment
from k8s_ucp.cli.editing.topology_edit import (
    Edit,
    as_it_is,
    confirm_removal,
    continues,
    edit_topology,
    find_tip,
    in_parts,
    plan_edit,
    shown_step,
)
from k8s_ucp.cli.topology_selection import (
    declared_file,
    declared_topology,
    environment_names,
    starting_with,
)
from k8s_ucp.clusters.user_contexts import forgetting_deleted
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.gitops.publish.merge import Scope
from k8s_ucp.gitops.publish.repositories import Published
from k8s_ucp.providers import DEFAULT, environment_providers
from k8s_ucp.topology import Topology, parse, read_topology
from k8s_ucp.topology.edit import with_item, with_overlays, without_environment
from k8s_ucp.topology.placement import with_rollouts

_DEFAULT = "at the chart's default"
_NOTED = 10
"""Maximum number of apps in the notes."""

app = declare("List, add and remove environments.")


@app.command("list", short_help="List environments, including committed ones.")
def show(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the environments of ucp.yaml and those added to the repositories by commits.

    The state is the one in ucp.yaml; `ucp status` shows what runs.
    """
    call = invocation(ctx)
    topology = declared_topology(call)
    data: list[dict[str, Any]] = [
        {
            "name": environment.name,
            "provider": environment.cluster.provider,
            "cluster": topology.app_cluster(environment.name),
            "promotesFrom": environment.promotes_from,
            "access": environment.access,
            "deletionProtection": environment.deletion_protection,
            "state": environment.state,
            "declared": True,
        }
        for environment in topology.spec.environments
    ]
    known = {each["name"] for each in data}
    for name, provider in _committed(call, topology).items():
        if name not in known:
            cluster = topology.app_cluster(name)
            row = {"name": name, "provider": provider, "cluster": cluster, "declared": False}
            data.append(row)
    rows = [
        [
            row["name"],
            row["cluster"],
            row["provider"],
            row.get("promotesFrom") or "",
            row.get("state", "")
            if row["declared"]
            else "in the repositories only, not in ucp.yaml",
        ]
        for row in data
    ]
    columns = ("environment", "cluster", "provider", "promotes from", "declared state")
    none = "no environments; add one: ucp env add NAME"
    call.show_list(output, data, columns, rows, none=none)


@app.command(
    short_help="Add an environment and create its cluster.",
    epilog=examples(
        "ucp env add eu",
        "ucp env add eu --promotes-from prod",
    ),
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the environment.")],
    provider: Annotated[
        str,
        option(
            "--cluster",
            "P",
            f"Provider of the environment's cluster: {', '.join(environment_providers())}.",
            autocompletion=lambda incomplete: starting_with(incomplete, environment_providers()),
        ),
    ] = DEFAULT,
    source: Annotated[
        str | None,
        option(
            "--promotes-from",
            "ENV",
            "Environment to promote from. Default: the last environment.",
            autocompletion=environment_names,
        ),
    ] = None,
    region: Annotated[
        str | None, option("--region", "R", "Cloud region or zone of the cluster.")
    ] = None,
    scoped: Annotated[
        bool, option("--scoped", None, "Restrict Argo CD to the apps' namespaces.")
    ] = False,
    protected: Annotated[
        bool, option("--protected", None, "Protect the environment from deletion.")
    ] = False,
    overlay: Annotated[
        list[str] | None,
        option(
            "--overlay",
            "APP=DIR",
            "Kustomize overlay that an app has for it, if its name differs; repeatable. Default: "
            "the app's base.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", None, "List the files without writing them.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Add an environment to ucp.yaml and both repositories, push, and create its cluster."""
    call = plan_invocation(ctx, output, plan=dry_run, flag="--dry-run")
    folders = _folders(overlay or ())
    before = declared_topology(call)
    source = source or _committed_source(call, before, name)

    def edit(text: str, path: Path) -> tuple[str, Topology]:
        environments = parse(text, path).spec.environments
        item: dict[str, Any] = {"name": name, "cluster": {"provider": provider}}
        if region:
            item["cluster"]["region"] = region
        if source or environments:
            item["promotesFrom"] = source or environments[-1].name
        if scoped:
            item["access"] = "scoped"
        if protected:
            item["deletionProtection"] = True
        text, topology = with_item(text, "environments", item, path)
        return with_overlays(text, folders, name, path) if folders else (text, topology)

    if dry_run:
        from k8s_ucp.cli.editing.preview.dry_run import show_changes

        raise typer.Exit(show_changes(call, edit, output))
    try:
        topology = edit_topology(call, edit, subject=f"Add the environment {name}")
    except UsageError:
        raise
    except UcpError as error:
        if more := _overlays_to_name(before, folders):
            error.next = f"{error.next}; or run the command again with {more}"
        raise
    how = how_far(call, topology, "ucp status --watch")
    call.console.say(f"environment {name} added; {and_rollouts(how, name, topology)}")
    for each in _behind(call, topology, name):
        call.console.say(f"note: {each}")


def _committed_source(call: Invocation, topology: Topology, name: str) -> str | None:
    """The environment that this one promotes from if a commit has added it already."""
    from k8s_ucp.gitops.promotion.gates import ENVIRONMENTS_FILE, promotes_from

    found = find_tip(call, topology, call.workspace.gitops(topology.name).apps)
    repository, commit = found or (None, None)
    if repository is None or commit is None:
        return None
    content = repository.read(commit, ENVIRONMENTS_FILE).get(ENVIRONMENTS_FILE, b"")
    source = promotes_from(content.decode("utf-8", "replace"), name)
    return source if source in {each.name for each in topology.spec.environments} else None


def _behind(call: Invocation, topology: Topology, name: str) -> list[str]:
    """Apps that start with other versions than in the previous environment, with a command.

    A new environment starts with the versions of ucp.yaml and bases; nothing is promoted
    automatically.
    """
    from k8s_ucp.git.repository import Repository
    from k8s_ucp.gitops.promotion.overlay import read_overlay
    from k8s_ucp.gitops.promotion.tip import GitTip

    before = next(each.promotes_from for each in topology.spec.environments if each.name == name)
    folder = call.workspace.gitops(topology.name).apps
    if not before or not folder.is_dir():
        return []
    clone = Repository(folder)
    commit = clone.resolve(f"refs/remotes/origin/{topology.spec.git.branch}")
    if commit is None:
        return []
    apps = [each.name for each in topology.spec.apps]
    tip = GitTip(clone, commit, apps)
    found = []
    for app_name in apps:
        try:
            here, ahead = (read_overlay(tip, app_name, each).pins for each in (name, before))
        except UcpError:
            continue  # It has nothing to promote, or no overlay there.
        other = [each for each in here if ahead.get(each, here[each]) != here[each]]
        if other:
            versions = [
                f"{each} {here[each] or _DEFAULT} (not {ahead[each] or _DEFAULT})" for each in other
            ]
            found.append(
                f"{app_name} starts on {name} with {some_of(versions, 2)}; to use the version of "
                f"{before}: "
                f"ucp promote {app_name} --env {name} --from {before}"
            )
    left = len(found) - _NOTED
    return [*found[:_NOTED], *([f"the same applies to {left} more apps"] if left > 0 else [])]


def and_rollouts(how: str, name: str, topology: Topology) -> str:
    """What to type after an environment was added.

    Where pods are simulated, Argo Rollouts runs as a process of this machine, started by `ucp
    start`.
    """
    if name not in with_rollouts(topology) or "ucp start" in how:
        return how
    return f"{how}; `ucp start` starts Argo Rollouts on it"


def _folders(words: Sequence[str]) -> dict[str, str]:
    """{app: folder of its overlay}. Raises UsageError."""
    found = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not name or not equals or not folder:
            raise UsageError(f"--overlay {word} is not valid", next="--overlay APP=DIR")
        found[name] = folder.strip("/")
    return found


def _overlays_to_name(topology: Topology, folders: Mapping[str, str]) -> str:
    """Flags for apps whose overlays are not named after the environments."""
    return " ".join(
        f"--overlay {each.name}={list(each.overlays.values())[-1]}"
        for each in topology.spec.apps
        if each.overlays and each.name not in folders
    )


@app.command(
    short_help="Remove an environment with its apps and its cluster.",
    epilog=examples(
        "ucp env remove eu --plan",
        "ucp env remove eu",
    ),
)
def remove(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the environment.", autocompletion=environment_names
        ),
    ],
    wait: Annotated[
        int,
        option(
            "--wait",
            "SECONDS",
            "How long to wait for the cluster to be deleted. 0: don't wait.",
            min=0,
        ),
    ] = 1200,
    yes: YesOption = False,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Remove an environment: its apps, then its cluster, its files and its entry in ucp.yaml.

    An environment with deletionProtection is refused: remove the protection by a commit first.
    """
    call = plan_invocation(ctx, output, plan=plan)
    again, file = f"ucp env remove {name}", declared_file(call)
    before = declared_topology(call)
    refuse_lost_core(call, before, again)
    declared = next((each for each in before.spec.environments if each.name == name), None)
    edit, removed = _removing(name), Scope(frozenset([name]), frozenset())
    if plan:
        deletions = preview_environment(call, before, declared) if declared else ()
        plan_edit(call, edit, output, removed=removed, after={"await-cluster-gone": deletions})
        return
    state = call.workspace.state(before.name)
    with (
        in_parts(call, before, f"environment {name}", again) as parts,
        forgetting_deleted([state.kubeconfig(before.app_cluster(name))]),
    ):
        deletion = deletion_of(call, before, name)
        subject = f"Remove the environment {name}"
        if not declared and continues(parts, again):
            # Interrupted between ucp.yaml and the pushes, or later: then there is nothing left to
            # push.
            edit_topology(call, as_it_is, subject=subject, removed=removed, part_of=parts)
        elif declared or not (deletion and deletion.has_begun()):
            # Refuse an invalid removal before asking.
            edit(read_topology(file), file)
            if deletion and not wait:
                refuse_unattended([deletion], again)
            what = f"the environment {name} with its apps and its cluster"
            confirm_removal(call, before, what, yes=yes)
            # Without a wait, nobody would have the rest deleted.
            with clusters_first([deletion] if deletion and wait else []):
                edit_topology(call, edit, subject=subject, removed=removed, part_of=parts)
        # An environment that gets this name later is another one.
        state.return_note(name).unlink(missing_ok=True)
        if deletion is None:
            how = "; the core cluster is not running: its cluster is deleted at the next start"
        elif not wait:
            how = f"; its cluster is being deleted: `{again}` waits until it is gone"
        else:
            with shown_step(
                call, parts, f"Wait until the cluster of {name} is gone", "await-cluster-gone"
            ) as report:
                await_cluster_deleted(deletion, again, report, seconds=wait)
            how = ""
    call.console.say(f"environment {name} removed{how}")


def _removing(name: str) -> Edit:
    """Removes an environment from ucp.yaml, unless it is protected or another promotes from it."""

    def edit(text: str, path: Path) -> tuple[str, Topology]:
        environments = parse(text, path).spec.environments
        refuse_protected((each for each in environments if each.name == name), path)
        for environment in environments:
            if environment.promotes_from == name:
                raise UsageError(
                    f"{environment.name} promotes from {name}",
                    next=f"change promotesFrom of {environment.name} in {path} first",
                )
        return without_environment(text, name, path)

    return edit


def _committed(call: Invocation, topology: Topology) -> dict[str, str | None]:
    """{environment in the core repository: provider of its cluster}"""
    folder = call.workspace.gitops(topology.name).core
    found = find_tip(call, topology, folder)
    if found is None:
        return {}
    clone, commit = found
    if commit is None:
        raise UcpError(f"{folder} has no branch {topology.spec.git.branch}", next="ucp start")
    published = Published("core", clone, commit, False)
    providers = published.providers()
    return {name: providers.get(name) for name in published.environments()}
