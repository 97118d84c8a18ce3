"""`ucp start`: creates or updates a topology, from its file or after a few questions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    PlanOption,
    PlanOutputOption,
    TakeoverOption,
    declare,
    examples,
    option,
    plan_invocation,
    with_given_options,
)
from k8s_ucp.cli.editing.topology_edit import context_of
from k8s_ucp.cli.git_credentials import read_credential_of
from k8s_ucp.cli.lifecycle.existing_core import ExistingCoreChoice, decide
from k8s_ucp.cli.lifecycle.start_request import StartRequest, parse_flags, resolve_topology
from k8s_ucp.cli.lifecycle.start_summary import summary_table
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.cli.topology_selection import refuse_inner_folder, selecting, starting_with
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.providers import core_providers, environment_providers

app = declare()


@app.command(
    epilog=examples(
        "ucp start --plan",
        "ucp start --yes",
        "ucp start --core kind --env stage=kind --env prod=kind",
        "ucp start --yes --cloud local --env stage=eks --env prod=eks",
    )
)
def start(
    ctx: typer.Context,
    yes: Annotated[
        bool, option("--yes", None, "Do not prompt: use ucp.yaml or the defaults.", "-y")
    ] = False,
    file: Annotated[
        Path | None, option("--file", "FILE", "Path of the topology file. Default: ucp.yaml.")
    ] = None,
    core: Annotated[
        str | None,
        option(
            "--core",
            "P",
            f"Provider of the core cluster: {', '.join(core_providers())}.",
            autocompletion=lambda incomplete: starting_with(incomplete, core_providers()),
        ),
    ] = None,
    ports: Annotated[
        str | None,
        option(
            "--ports",
            "HTTP,HTTPS",
            "HTTP and HTTPS ports of this machine to forward to a kind core. Default: 80,443.",
        ),
    ] = None,
    adopt: Annotated[
        str | None,
        option(
            "--adopt",
            "COMPONENTS",
            "Components of an existing core cluster to use instead of installing them: "
            "argocd, crossplane or argocd,crossplane. Saved to the topology file.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        option(
            "--env",
            "NAME=P",
            f"Environment and provider of its cluster ({', '.join(environment_providers())}), in "
            "the order of promotion; repeatable. Default: stage and prod with the provider of "
            "the core.",
        ),
    ] = None,
    apps: Annotated[
        list[str] | None, option("--app", "NAME", "App to deploy; repeatable. Default: echo.")
    ] = None,
    cloud: Annotated[
        Literal["local"] | None,
        option(
            "--cloud",
            None,
            "local: simulate AWS on this machine, without an account. With an embedded core only. "
            "Saved to the new topology file.",
        ),
    ] = None,
    existing: Annotated[
        ExistingCoreChoice | None,
        option(
            "--existing", None, "What to do if the kind core cluster already exists. Default: use."
        ),
    ] = None,
    ours: Annotated[
        list[str] | None,
        option(
            "--ours",
            "PATH",
            "On a conflict, keep the repository's version of this file; repeatable.",
        ),
    ] = None,
    theirs: Annotated[
        list[str] | None,
        option(
            "--theirs",
            "PATH",
            "Take the rendered version of this file, also over an edit; repeatable.",
        ),
    ] = None,
    takeover: TakeoverOption = False,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Create or update everything in ucp.yaml. Safe to run again.

    If there is no ucp.yaml, a wizard asks for the core cluster, the environments and the apps, and
    writes the file.
    """
    call = plan_invocation(ctx, output, plan=plan)
    refuse_inner_folder(call)
    if plan and existing not in (None, ExistingCoreChoice.use):
        raise UsageError(
            f"--plan and --existing {existing} are mutually exclusive", next="ucp stop --plan"
        )
    flags = parse_flags(
        yes=yes,
        file=file,
        core=core,
        ports=ports,
        adopt=adopt,
        environments=env or None,
        apps=apps or None,
        simulate=cloud == "local",
    )
    request = resolve_topology(call, flags, plan=plan)

    from k8s_ucp import plans
    from k8s_ucp.gitops.publish.repositories import resolutions_from

    context = context_of(call, request.topology, request.text, file=request.path)
    context.publishing.resolutions = resolutions_from(ours or [], theirs or [])
    context.git_read_credential = read_credential_of(request.topology, call.workspace)
    context.takeover = takeover
    if plan:
        before = {"write-topology": _planned_file(request)}
        show_plan(call, [plans.start(request.topology)], context, output, before=before)
        return
    if not decide(call, context, existing, ask=not yes):
        call.console.say(f"{request.topology.name} is stopped; its repositories are kept.")
        return
    # A new context, since a stop may have used this one.
    context = replace(context)
    seconds = run_plan(
        plans.start(request.topology),
        context,
        call.console,
        before=lambda: _write_down(call, request),
    )
    options = selecting(call, context.topology.name)
    call.console.say(with_given_options(summary_table(context, seconds), options))


def _planned_file(request: StartRequest) -> list[PlannedChange]:
    """What the start would do to the topology file."""
    if not request.exists:
        return [PlannedChange("create", request.path.name, "there is none")]
    if request.changed:
        why = f"{request.changed} is added, as the flags specify"
        return [PlannedChange("change", request.path.name, why)]
    return []


def _write_down(call: Invocation, request: StartRequest) -> None:
    """Write ucp.yaml if it is new or changed, and keep a copy for other commands."""
    from k8s_ucp.cli.topology_selection import remember
    from k8s_ucp.gitops.render.repositories import templates_folder
    from k8s_ucp.topology.schema import NAME
    from k8s_ucp.workspace import replace_file, writing

    if not request.exists:
        schema = (templates_folder() / "core" / NAME).read_text("utf-8")
        beside = request.path.with_name(NAME)
        with writing(request.path), request.path.open("x", encoding="utf-8") as stream:
            stream.write(request.text)
        with writing(beside):
            if beside.is_symlink():
                beside.unlink()  # In a folder of others, it could lead to any file of the user.
            beside.write_text(schema, "utf-8")
        call.console.say(f"wrote {request.path}")
    elif not request.path.exists() or request.path.read_text("utf-8") != request.read:
        # It was read before the lock was taken, and edited in between.
        raise UcpError(
            f"{request.path} changed while it was checked; nothing was started", next="ucp start"
        )
    elif request.changed:
        with writing(request.path):
            replace_file(request.path, request.text)
        call.console.say(f"wrote {request.changed} to {request.path}")
    remember(call.workspace, request.topology.name, request.text)
