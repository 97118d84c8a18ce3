"""`ucp team`: teams, each with a namespace, a quota and a repository of its own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
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
from k8s_ucp.cli.editing.deletion import core_silence, how_far, open_core, refuse_lost_core
from k8s_ucp.cli.editing.team_drain import (
    await_claims_deleted,
    await_projects_deleted,
    delete_team_namespaces,
    preview_claims,
    preview_team,
    without_claims,
)
from k8s_ucp.cli.editing.topology_edit import (
    as_it_is,
    confirm_removal,
    edit_topology,
    in_parts,
    plan_edit,
    pointing_to_start,
    shown_step,
)
from k8s_ucp.cli.git_credentials import git_credential
from k8s_ucp.cli.topology_selection import declared_file, declared_topology, team_names
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import UcpError, UsageError, unknown_name
from k8s_ucp.gitops.publish.team_repository import TeamRepository, fill, open_team_repository
from k8s_ucp.gitops.render.repositories import TeamStart, render_team
from k8s_ucp.gitops.render.values.claims import FOLDER, ClaimRequest, check_is_composed
from k8s_ucp.topology import Team, Topology, read_topology
from k8s_ucp.topology.edit import with_item, without_item

app = declare("List, add and remove teams.")
APPLICATIONS_SECONDS = 180.0


@app.command("list", short_help="List teams with their repositories and claims.")
def show(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the teams of ucp.yaml with their namespaces, repositories and claims."""
    call = invocation(ctx)
    topology = declared_topology(call)
    data: list[dict[str, Any]] = []
    for team in topology.spec.teams:
        folder = call.workspace.gitops(topology.name)
        where = team.repo or folder.team_remote(team.name).as_uri()
        data.append(
            {
                "name": team.name,
                "namespace": team.namespace,
                "repository": where,
                "quota": team.quota.model_dump(mode="json"),
                "claims": _claims(call, topology, team),
            }
        )
    rows = [
        [each["name"], each["namespace"], ", ".join(each["claims"]), each["repository"]]
        for each in data
    ]
    columns = ("team", "namespace", "claims", "repository")
    call.show_list(output, data, columns, rows, none="no teams; add one: ucp team add NAME")


@app.command(
    short_help="Add a team, with a repository of its own.",
    epilog=examples(
        "ucp team add shop --template service",
        "ucp team add shop --repo https://git.example.org/shop.git",
    ),
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new team.")],
    template: Annotated[
        TeamStart | None,
        option(
            "--template", "T", "Initial content of the repository: service, database or compute."
        ),
    ] = None,
    repo: Annotated[
        str | None,
        option("--repo", "URL", "Repository of the team. Default: a local one in gitops/."),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", None, "List the files without writing them.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Add a team to ucp.yaml and the core repository, push, and fill the team's repository."""
    call = plan_invocation(ctx, output, plan=dry_run, flag="--dry-run")
    item: dict[str, Any] = {"name": name, **({"repo": repo} if repo else {})}

    def edit(text: str, path: Path) -> tuple[str, Topology]:
        return with_item(text, "teams", item, path)

    path = declared_file(call)
    # Which says how a lost file is restored.
    with pointing_to_start(call, declared_topology(call)):
        _, topology = edit(read_topology(path), path)
    team = team_of(topology, name)
    if template and not topology.spec.environments:
        raise UsageError(f"--template {template} needs an environment", next="ucp env add NAME")
    if template == "service" and name[0].isdigit():
        raise UsageError(
            f"--template service can't be used for the team {name}: its Service has this name, "
            "and the name of a Service begins with a letter (RFC 1035)",
            next=f"choose another name, such as my-{name}, or omit --template",
        )
    if template in ("database", "compute"):
        request = ClaimRequest(template, template)
        check_is_composed(topology, topology.spec.environments[0], request)
    if dry_run:
        from k8s_ucp.cli.editing.preview.dry_run import show_changes

        own = [(f"{name}: {each}", "new") for each in sorted(render_team(topology, team, template))]
        raise typer.Exit(show_changes(call, edit, output, own))
    with _begun(call, topology, team) as repository:
        fill(repository, topology, team, template)
        topology = edit_topology(call, edit, subject=f"Add the team {name}")
    call.console.say(f"its repository: {repository.clone.url()}")
    call.console.say(f"team {name} added; {how_far(call, topology, 'ucp status --watch')}")


@app.command(short_help="Remove a team: claims, apps, project, namespaces.")
def remove(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the team.", autocompletion=team_names)
    ],
    wait: Annotated[
        int, option("--wait", "SECONDS", "How long to wait for the claims to be deleted.", min=1)
    ] = 1200,
    yes: YesOption = False,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Remove a team: its claims, apps, project and namespaces.

    Its claims are deleted first, with their data; then its projects and namespaces. A namespace
    with objects that ucp did not create is kept, and so is the team's repository.
    """
    call = plan_invocation(ctx, output, plan=plan)
    topology = declared_topology(call)
    with in_parts(call, topology, f"team {name}", f"ucp team remove {name}") as parts:
        _remove(call, topology, name, parts, wait=wait, yes=yes, plan=plan, output=output)


def _remove(
    call: Invocation,
    topology: Topology,
    name: str,
    parts: Journal,
    *,
    wait: int,
    yes: bool,
    plan: bool,
    output: Output,
) -> None:
    declared = name in {each.name for each in topology.spec.teams}
    noted = parts.data.get("team")
    # If an earlier run has removed it from ucp.yaml, the journal has it.
    team = Team.model_validate(noted) if noted and not declared else team_of(topology, name)

    def edit(text: str, path: Path) -> tuple[str, Topology]:
        return without_item(text, "teams", name, path) if declared else as_it_is(text, path)

    started = call.workspace.gitops(topology.name).core.exists()
    if plan and not started:
        plan_edit(call, edit, output)
        return
    # Before asking: only the core that acts could do it.
    refuse_lost_core(call, topology, f"ucp team remove {name}")
    if not plan:
        what = f"the team {name} with its claims and their data"
        confirm_removal(call, topology, what, yes=yes)
    if not started:
        edit_topology(call, edit)
        call.console.say(f"team {name} removed")
        return
    core = open_core(call, topology)
    if core is None:
        raise UcpError(
            f"{core_silence(call, topology)}, but is needed to see that the claims of {name} "
            "are gone",
            next=f"ucp start, then: ucp team remove {name}",
        )
    with contextlib.closing(core):
        if plan:
            claims = {"remove-claims": preview_claims(core, team, _files(call, topology, team))}
            deletions = {"await-projects-gone": preview_team(topology, team, core)}
            plan_edit(call, edit, output, before=claims, after=deletions)
            return
        parts.keep(team=team.model_dump(mode="json", by_alias=True, exclude_unset=True))
        repository = open_team(call, topology, team)
        with shown_step(call, parts, f"Remove the claims of {name}", "remove-claims") as report:
            if repository.commit(f"Remove the claims of {name}\n", without_claims):
                call.console.say(f"the claims of {name} are being deleted")
            await_claims_deleted(core, team, report, seconds=wait)
        edit_topology(call, edit, subject=f"Remove the team {name}", part_of=parts)
        with shown_step(
            call, parts, f"Delete the projects of {name}", "await-projects-gone"
        ) as report:
            await_projects_deleted(core, topology, team, report, seconds=APPLICATIONS_SECONDS)
        with shown_step(call, parts, f"Delete the namespaces of {name}", "delete-namespaces"):
            delete_team_namespaces(call, topology, team, core)
    call.console.say(f"team {name} removed; its repository stays: {repository.clone.url()}")


def team_of(topology: Topology, name: str | None) -> Team:
    """The team of that name, or the only one. Raises UsageError."""
    teams = {each.name: each for each in topology.spec.teams}
    if name is None and len(teams) == 1:
        return next(iter(teams.values()))
    if name in teams:
        return teams[name]
    known = f"; available: {', '.join(teams)}" if teams else ""
    if name is None:
        raise UsageError(
            f"the team is not specified{known}" if teams else "ucp.yaml has no team",
            next="--team NAME" if teams else "ucp team add NAME",
        )
    raise unknown_name("team", name, [*teams], next="ucp team list")


def open_team(call: Invocation, topology: Topology, team: Team) -> TeamRepository:
    """The clone of a team's repository. Raises UcpError."""
    credential = git_credential() if team.repo else None
    return open_team_repository(topology, team, call.workspace.gitops(topology.name), credential)


def _claims(call: Invocation, topology: Topology, team: Team) -> list[str]:
    found = _files(call, topology, team)
    return sorted(Path(each).stem for each in found if each.endswith((".yaml", ".yml", ".json")))


def _files(call: Invocation, topology: Topology, team: Team) -> dict[str, bytes]:
    """Claims in its repository; empty if this machine has no clone of it."""
    if not call.workspace.gitops(topology.name).team(team.name).is_dir():
        return {}
    return open_team(call, topology, team).files(FOLDER.rstrip("/"))


@contextlib.contextmanager
def _begun(call: Invocation, topology: Topology, team: Team) -> Iterator[TeamRepository]:
    """Its repository; if the team isn't added, what was created for it is deleted again."""
    folder = call.workspace.gitops(topology.name)
    paths = [folder.team(team.name), *([] if team.repo else [folder.team_remote(team.name)])]
    new = [each for each in paths if not each.exists()]
    try:
        yield open_team(call, topology, team)
    except BaseException:
        if not _is_declared(call, team):
            for each in new:
                shutil.rmtree(each, ignore_errors=True)
        raise


def _is_declared(call: Invocation, team: Team) -> bool:
    """Whether ucp.yaml has it after all: the edit was kept, or another command added it."""
    try:
        topology = declared_topology(call)
    except UcpError:
        return True  # Unknown.
    return team.name in {each.name for each in topology.spec.teams}
