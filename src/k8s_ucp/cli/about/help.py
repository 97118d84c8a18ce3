"""`ucp help`: the help page of a command, as with `--help`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import declare, examples, invocation
from k8s_ucp.errors import UsageError

app = declare()


def _commands(ctx: typer.Context, incomplete: str) -> list[str]:
    context = _context_of(ctx, ctx.params.get("words") or ())
    known = getattr(context.command, "commands", {})
    return [each for each in known if each.startswith(incomplete)]


@app.command(epilog=examples("ucp help promote", "ucp help app add"))
def help(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...", help="Command, and its sub-command.", autocompletion=_commands
        ),
    ] = None,
) -> None:
    """Print the help page of a command."""
    invocation(ctx).console.data(_context_of(ctx, words or ()).get_help())


def _context_of(ctx: typer.Context, words: Sequence[str]) -> Any:
    """The context of the command that the words name. Raises UsageError."""
    context: Any = ctx.find_root()
    for word in words:
        path = context.command_path
        # The group of all commands answers itself: it also knows words of other tools.
        if context.parent and word not in getattr(context.command, "commands", {}):
            raise UsageError(f"{path} has no command {word}", next=f"{path} --help")
        name, command, _ = context.command.resolve_command(context, [word])
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    return context
