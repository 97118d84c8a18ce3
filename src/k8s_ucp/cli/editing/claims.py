"""`ucp claim`: lists, writes and removes claims in a team's repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal

import typer

from k8s_ucp.cli.command import (
    Invocation,
    ListOutput,
    ListOutputOption,
    YesOption,
    declare,
    examples,
    invocation,
    option,
)
from k8s_ucp.cli.editing.deletion import open_core
from k8s_ucp.cli.editing.teams import open_team, team_of
from k8s_ucp.cli.topology_selection import declared_topology, environment_names, team_names
from k8s_ucp.errors import UsageError, some_of, unknown_name
from k8s_ucp.gitops.manifests.yaml_text import dump_all, part
from k8s_ucp.gitops.render.values.claims import (
    EMPTY_FOLDER,
    FOLDER,
    KINDS,
    README,
    ClaimRequest,
    check_is_composed,
    claim,
    claim_flags,
    claim_path,
    full_name,
)
from k8s_ucp.topology import NAME_PATTERN, Environment, Topology

app = declare("List, write and remove claims of a team.")
TeamOption = Annotated[
    str | None,
    option("--team", "T", "Name of the team. Default: the only one.", autocompletion=team_names),
]


@app.command("list", short_help="List the claims of teams, with their states.")
def show(
    ctx: typer.Context,
    team: Annotated[
        str | None,
        option("--team", "T", "Only claims of this team.", autocompletion=team_names),
    ] = None,
    output: ListOutputOption = ListOutput.table,
) -> None:
    """List the claims in the repositories of all teams, or of one, with their states.

    The state is the core cluster's: ready, waiting, deleting, missing or unknown.
    """
    call = invocation(ctx)
    topology = declared_topology(call)
    teams = [team_of(topology, team)] if team else topology.spec.teams
    data: list[dict[str, Any]] = []
    for each in teams:
        for path, content in sorted(open_team(call, topology, each).files("claims").items()):
            data += [
                {"team": each.name, "path": path, "namespace": each.namespace, **found}
                for found in _described(path, content)
            ]
    _add_states(call, topology, data)
    columns = ("team", "claim", "kind", "environment", "size", "file", "state", "why")
    keys = ("team", "name", "kind", "environment", "size", "path", "state", "why")
    rows = [[each[key] or "" for key in keys] for each in data]
    call.show_list(output, data, columns, rows, none=_none(topology))


@app.command(
    short_help="Write a claim for a database or a machine.",
    epilog=examples(
        "ucp claim new database orders --size medium",
        "ucp claim new compute build --env stage --dry-run",
    ),
)
def new(
    ctx: typer.Context,
    kind: Annotated[
        Literal["database", "compute"],
        typer.Argument(help="Kind of the claim: database or compute.", metavar="KIND"),
    ],
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the claim; it is prefixed with the team's."),
    ],
    team: TeamOption = None,
    size: Annotated[
        Literal["small", "medium", "large"], option("--size", "S", "small, medium or large.")
    ] = "small",
    env: Annotated[
        str | None,
        option(
            "--env",
            "NAME",
            "Environment that uses it. Default: the first one.",
            autocompletion=environment_names,
        ),
    ] = None,
    provider: Annotated[
        str | None,
        option("--provider", "P", "Provider. Default: the cloud of the environment, or local."),
    ] = None,
    storage: Annotated[
        int, option("--storage", "GB", "For a database: its size in GB.", min=10, max=65536)
    ] = 10,
    version: Annotated[
        str, option("--version", "V", "For a database: major version of Postgres.")
    ] = "16",
    dry_run: Annotated[
        bool, option("--dry-run", None, "Print the claim without writing it.")
    ] = False,
) -> None:
    """Write a claim to the team's repository and push it."""
    call = invocation(ctx)
    topology = declared_topology(call)
    whose = team_of(topology, team)
    request = ClaimRequest(kind, name, size, provider, storage, version)
    full = full_name(whose, name)
    _check_name(full)
    _check_provider(provider)
    environment = _environment(topology, env)
    check_is_composed(topology, environment, request)
    text = dump_all([claim(whose, environment, request)])
    path = claim_path(whose, name)
    if dry_run:
        call.console.data(text)
        return

    def change(files: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        if path in files:
            raise UsageError(
                f"the claim {full} already exists in the repository of the team {whose.name}",
                next="ucp claim list",
            )
        return {path: text.encode()}

    open_team(call, topology, whose).commit(f"Claim the {kind} {full}\n", change)
    call.console.say(f"claim {full} written; its connection: Secret {full}-connection")


@app.command(short_help="Remove a claim, its resources and data.")
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the claim.")],
    team: TeamOption = None,
    yes: YesOption = False,
) -> None:
    """Remove a claim from the team's repository; its resources and data are deleted."""
    call = invocation(ctx)
    topology = declared_topology(call)
    whose = team_of(topology, team)
    full, path = full_name(whose, name), claim_path(whose, name)

    def change(files: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        if path not in files:
            claims = sorted(each for each in files if each.startswith(FOLDER) and each != README)
            known = [PurePath(each).stem.removeprefix(f"{whose.name}-") for each in claims]
            raise unknown_name("claim", name, known, next="ucp claim list")
        if others := _others(path, files[path], full):
            raise UsageError(
                f"{path} contains more than the claim {full}, which would be deleted with it, with "
                f"its data: {some_of(others)}",
                next=f"remove the claim from the file in the team's repository and push: {path}",
            )
        return {path: None, **({} if README in files else EMPTY_FOLDER)}

    repository = open_team(call, topology, whose)
    if not yes:
        from k8s_ucp.cli import questions

        # Refuse an invalid removal before asking.
        change(repository.files())
        questions.require_consent(
            f"Remove the claim {full} and delete its data?",
            "nothing was removed",
            next=f"ucp claim remove {name} --yes",
            needed=False,
        )
    repository.commit(f"Remove the claim {full}\n", change)
    call.console.say(f"claim {full} removed; its resources are being deleted")


def _none(topology: Topology) -> str:
    if not topology.spec.teams:
        return "no claims: there are no teams; add one: ucp team add NAME"
    flags = claim_flags(topology)
    if flags is None:
        return "no claims; nothing would create them: no cloud is used, and none is simulated"
    if len(topology.spec.teams) > 1:
        flags = {**flags, "team": topology.spec.teams[0].name}
    command = "".join(f" --{flag} {value}" for flag, value in flags.items())
    return f"no claims; write one: ucp claim new database NAME{command}"


def _add_states(call: Invocation, topology: Topology, data: list[dict[str, Any]]) -> None:
    """Add the state of each claim on the core cluster, which is queried only if there are any."""
    from k8s_ucp.inspect import claim_states

    names = [f"{each['kind']} {each['namespace']}/{each['name']}" for each in data]
    if not names:
        return
    core = open_core(call, topology)
    try:
        states = claim_states.collect(core, {*names})
    finally:
        if core:
            core.close()
    for name, each in zip(names, data, strict=True):
        found = states[name] if each["name"] else claim_states.UNREADABLE
        each |= {"state": found.state, "why": found.why}


def _environment(topology: Topology, name: str | None) -> Environment:
    environments = {each.name: each for each in topology.spec.environments}
    if not environments:
        raise UsageError("ucp.yaml has no environment", next="ucp env add NAME")
    found = environments.get(name) if name else next(iter(environments.values()))
    if found is None:
        raise unknown_name("environment", name, [*environments], next="ucp env list")
    return found


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(
            f"a claim can't be named '{name}': lower-case letters, digits and '-', at most 40 "
            "characters with the team's name"
        )


def _check_provider(name: str | None) -> None:
    from k8s_ucp.clouds import database_providers

    known = list(database_providers())
    if name and name not in known:
        raise unknown_name("provider", name, known)


def _others(path: str, content: bytes, name: str) -> list[str]:
    """What a file contains besides the claim of this name, in words."""
    documents = _documents(content)
    if documents is None:
        return [f"what can't be parsed as YAML ({path})"]
    found = []
    for each in documents:
        about = each if isinstance(each, dict) else {}
        named = part(about, "metadata").get("name")
        if each is not None and not (about.get("kind") in KINDS.values() and named == name):
            found.append(f"{about.get('kind') or 'an object without a kind'} {named or ''}".strip())
    return found


def _described(path: str, content: bytes) -> list[dict[str, Any]]:
    """Claims in a file; a file that can't be parsed is listed by its path."""
    if not path.endswith((".yaml", ".yml", ".json")):
        return []
    documents = _documents(content)
    if documents is None:
        return [dict.fromkeys(("name", "kind", "environment", "size"))]
    return [
        {
            "name": _text_at(each, "metadata", "name"),
            "kind": each["kind"],
            "environment": _text_at(each, "spec", "environment"),
            "size": _text_at(each, "spec", "size"),
        }
        for each in documents
        if isinstance(each, dict) and each.get("kind") in KINDS.values()
    ]


def _text_at(document: Any, key: str, field: str) -> str | None:
    """A field as text, whatever its type: YAML has dates, which JSON can't represent."""
    found = part(document, key).get(field)
    return None if found is None else str(found)


def _documents(content: bytes) -> list[Any] | None:
    """None if the file can't be parsed."""
    from k8s_ucp import yaml_io

    try:
        return list(yaml_io.load_all(content.decode("utf-8")))
    except Exception:  # noqa: BLE001 (people write these files)
        return None
