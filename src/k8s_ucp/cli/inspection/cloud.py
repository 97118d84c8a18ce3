"""`ucp cloud`: shows changes of the simulated cloud, injects faults, and resets it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    OutputOption,
    YesOption,
    declare,
    examples,
    invocation,
    option,
)
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.timestamps import stamp

if TYPE_CHECKING:
    from k8s_ucp.cloud.admin import CloudAdmin

app = declare("Inspect or reset the simulated cloud, or inject faults.")
fault = declare("Inject faults: have the simulated cloud refuse, lose or delay calls.")
app.add_typer(fault, name="fault", short_help="Inject faults into the simulated cloud.")

SHOWN = 5
"""Resources that an error message names."""


@app.command(short_help="List the calls that changed the cloud.")
def ledger(
    ctx: typer.Context,
    output: OutputOption = Output.table,
    since: Annotated[
        int, option("--since", "NUMBER", "Only calls after the one with this number.", min=0)
    ] = 0,
) -> None:
    """List the calls that changed the simulated cloud, oldest first."""
    call = invocation(ctx)
    entries = _admin(call)[1].ledger(since)
    rows = [
        [
            each.number,
            stamp(each.time),
            each.region,
            f"{each.service}:{each.operation}",
            f"{each.kind} {each.id}".strip(),
            _outcome(each),
        ]
        for each in entries
    ]
    columns = ("number", "time", "region", "call", "resource", "outcome")
    call.show_list(output, [asdict(each) for each in entries], columns, rows)


@fault.command(
    short_help="Add a fault.",
    epilog=examples(
        "ucp cloud fault add throttle --service ec2 --times 3",
        "ucp cloud fault add lost --operation 'Create*' --times 1",
    ),
)
def add(
    ctx: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=(
                "unavailable: respond with 503; throttle: respond with a throttling error; hang: "
                "never respond; lost: carry the call out, but never respond; slow: respond after "
                "--seconds."
            ),
        ),
    ],
    service: Annotated[str, option("--service", "PATTERN", "Service, such as ec2.")] = "*",
    operation: Annotated[
        str, option("--operation", "PATTERN", "Operation, such as CreateVpc or Delete*.")
    ] = "*",
    region: Annotated[str, option("--region", "PATTERN", "Region, such as eu-west-3.")] = "*",
    times: Annotated[
        int, option("--times", "NUMBER", "Number of calls to apply it to. 0: until cleared.")
    ] = 0,
    seconds: Annotated[
        float, option("--seconds", "SECONDS", "How long a slow or hanging call takes.")
    ] = 0.0,
) -> None:
    """Add a fault to the end of the list. The first one that matches a call applies."""
    wanted = CloudFault(kind, service, operation, region, times, seconds)
    if kind == "slow" and not seconds:
        raise UsageError(
            "a slow fault requires --seconds", next="ucp cloud fault add slow --seconds 5"
        )
    call = invocation(ctx)
    _admin(call)[1].add_fault(wanted)
    call.console.say(f"added {_words(wanted)}")


@fault.command("list", short_help="List the faults that are set.")
def show(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """List the faults that are set, in the order in which they apply."""
    call = invocation(ctx)
    found = [asdict(each) for each in _admin(call)[1].faults()]
    columns = ("kind", "service", "operation", "region", "times", "seconds")
    rows = [[each[column] for column in columns] for each in found]
    none = "no faults; add one: ucp cloud fault add KIND"
    call.show_list(output, found, columns, rows, none=none)


@fault.command(short_help="Remove all faults.")
def clear(ctx: typer.Context) -> None:
    """Remove all faults."""
    call = invocation(ctx)
    _admin(call)[1].clear_faults()
    call.console.say("removed all faults")


@app.command(short_help="Delete everything in the cloud.")
def reset(
    ctx: typer.Context,
    force: Annotated[
        str | None,
        option(
            "--force", "TOPOLOGY", "Delete existing resources, too; takes the name of the topology."
        ),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Delete everything in the simulated cloud. The ledger is kept and records the reset."""
    call = invocation(ctx)
    name, admin = _admin(call)
    if force not in (None, name):
        raise UsageError(f"--force names {force}, but the topology is {name}")
    refuse_reset(admin.ledger(), name, forced=force is not None)
    if not yes:
        _confirm(name)
    admin.reset()
    call.console.say(f"the simulated cloud of {name} is empty")


def refuse_reset(entries: list[CloudLedgerEntry], topology: str, *, forced: bool) -> None:
    """Raises UcpError if resources exist and the deletion was not forced."""
    left = sorted(f"{kind} {id}" for _, kind, id in remaining(entries))
    if not left or forced:
        return
    raise UcpError(
        f"the simulated cloud of {topology} has resources: {some_of(left, SHOWN)}",
        next=f"remove their declarations, or delete them: ucp cloud reset --force {topology}",
    )


def _confirm(name: str) -> None:
    from k8s_ucp.cli import questions

    question = f"Delete everything in the simulated cloud of {name}?"
    questions.require_consent(question, "nothing was deleted", next="ucp cloud reset --yes")


def _admin(call: Invocation) -> tuple[str, CloudAdmin]:
    """The topology's name and its running cloud. Raises UsageError if it has none, UcpError."""
    context = chosen_view(call)
    name = context.topology.name
    if not context.simulates_cloud:
        raise UsageError(
            f"{name} has no simulated cloud",
            next="ucp start --cloud local (in a new workspace)",
        )
    if context.is_stopped():
        raise UcpError(f"{name} is stopped", next="ucp start")
    return name, context.cloud.admin()


def _outcome(entry: CloudLedgerEntry) -> str:
    words = ("made" if entry.made else "deleted") if entry.kind else "done"
    lost = "" if entry.answered else ", answer lost"
    return (words if entry.succeeded else f"refused ({entry.status})") + lost


def _words(fault: CloudFault) -> str:
    often = f"calls: {fault.times}" if fault.times else "until cleared"
    return f"{fault.kind} for {fault.service}:{fault.operation} in {fault.region}, {often}"
