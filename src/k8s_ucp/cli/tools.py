"""`ucp tools install|prune|list`: manages the pinned programs in the user's cache."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from k8s_ucp.cli.command import Output, OutputOption, declare, examples, invocation
from k8s_ucp.cli.topology_selection import declared_file
from k8s_ucp.tools.catalogue import EMBEDDED
from k8s_ucp.tools.forecast import about
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.kept_versions import kept_anywhere, states
from k8s_ucp.tools.recipe import Phase, ProgramSource, ToolProgress
from k8s_ucp.workspace import cache_folder

app = declare("Install, list or remove the pinned programs.")

PRINT_SECONDS = 10.0

SourceOption = Annotated[
    ProgramSource | None,
    typer.Option(
        "--source",
        help=(
            "Source of the programs. Default: tools.source of ucp.yaml, or auto: releases "
            "if reachable, otherwise built from sources."
        ),
    ),
]


@app.command(
    short_help="Download or build missing programs.",
    epilog=examples(
        "ucp tools install --source sources",
    ),
)
def install(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Names of the programs. Default: all that `ucp start` needs."
        ),
    ] = None,
    source: SourceOption = None,
) -> None:
    """Install missing programs: release downloads, or builds from pinned sources.

    Safe to run again and to interrupt. With --source, topologies with tools.source: auto use these
    programs from then on.
    """
    console = invocation(ctx).console
    began, printed = time.monotonic(), dict[str, tuple[Phase, float]]()

    def on_progress(progress: ToolProgress) -> None:
        phase, last = printed.get(progress.tool, (None, 0.0))
        if phase != progress.phase or progress.elapsed - last >= PRINT_SECONDS:
            printed[progress.tool] = (progress.phase, progress.elapsed)
            words = f"{progress.tool} {progress.version}: {progress.phase} {progress.detail}"
            left = f" ({about(progress.left)})" if progress.left else ""
            console.say(f"{progress.elapsed:7.1f} s  {words.rstrip()}{left}")

    installer = Installer(cache_folder(), on_progress, source=_source(ctx, source))
    wanted = names or _needed(ctx)
    missing = installer.missing(wanted)
    installer.install(wanted)
    if source:
        installer.choose(wanted)
    console.say(
        f"installed: {', '.join(missing)} ({time.monotonic() - began:.1f} s)"
        if missing
        else "everything is already installed"
    )


@app.command(short_help="Remove unused programs of other ucp versions.")
def prune(ctx: typer.Context) -> None:
    """Remove unused programs and stored kinds (CRDs) of other ucp versions.

    Programs that a topology keeps until `ucp upgrade` stay, whether it runs or is stopped.
    """
    console = invocation(ctx).console
    from k8s_ucp.clusters.local import linked_entries
    from k8s_ucp.steps.startup.seed import prune_seeds

    cache = cache_folder()
    kept = kept_anywhere(cache).union(*map(linked_entries, states(cache)))
    removed, used = Installer(cache, lambda _: None).prune(kept)
    removed += prune_seeds(cache)
    if used:
        console.say(f"in use, kept: {', '.join(used)}")
    console.say(f"removed: {', '.join(removed)}" if removed else "nothing to remove")


@app.command("list")
def show(
    ctx: typer.Context,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify the checksum of each installed program.")
    ] = False,
    source: SourceOption = None,
    output: OutputOption = Output.table,
) -> None:
    """List the pinned programs and whether they are installed."""
    installer = Installer(cache_folder(), lambda _: None, source=_source(ctx, source))
    states = installer.states(verify=verify)
    data = [
        {
            "name": state.name,
            "version": state.version,
            "programs": list(state.programs),
            "installed": state.folder is not None,
            "from": state.origin or None,
            "folder": str(state.folder) if state.folder else None,
            "damaged": list(state.damaged),
        }
        for state in states
    ]
    rows = [
        [
            state.name,
            state.version,
            f"DAMAGED: {', '.join(state.damaged)}"
            if state.damaged
            else state.folder or "not installed",
            state.origin,
            ", ".join(state.programs),
        ]
        for state in states
    ]
    columns = ("name", "version", "where", "from", "programs")
    invocation(ctx).show_list(output, data, columns, rows)


def _needed(ctx: typer.Context) -> tuple[str, ...]:
    """Tools for the workspace's ucp.yaml and its add-ons, or else for an embedded topology."""
    file = declared_file(invocation(ctx))
    if not file.exists():
        return EMBEDDED
    from k8s_ucp.tools.required import needed_tools
    from k8s_ucp.topology import load

    return needed_tools(load(file))


def _source(ctx: typer.Context, wanted: ProgramSource | None) -> ProgramSource:
    """The source given by the flag, or else by the workspace's ucp.yaml, or else auto."""
    file = declared_file(invocation(ctx))
    if wanted or not file.exists():
        return wanted or ProgramSource.AUTO
    from k8s_ucp.topology import load

    return ProgramSource(load(file).spec.tools.source)
