"""Shared by all command modules: declaration of commands, and the global options.

A command module `cli/<name>.py` has `app = declare()` and one function with `@app.command()`, or
several for a command with sub-commands. The table in main.py names it. It is imported only when its
command is called, so it may import everything that the command needs at its top.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k8s_ucp import __version__
from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.cli.console import Console

VERSION = f"ucp {__version__}"
"""What `ucp version` and `ucp --version` print."""


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UcpError(
            "the current folder was deleted", next="cd to a folder that exists, such as cd ~"
        ) from error


@dataclass
class Invocation:
    """The global options of one call of `ucp`."""

    folder: Path = field(default_factory=_here)
    """--workspace"""
    topology: str | None = None
    """--topology"""
    quiet: bool = False
    verbose: bool = False
    color: bool = True

    given: dict[str, str] = field(default_factory=dict, compare=False)
    """--workspace and --topology as typed, to be repeated in suggested commands."""
    _looked_at: set[Path] = field(default_factory=set, init=False, compare=False, repr=False)

    @property
    def workspace(self) -> Workspace:
        """The workspace of this call; under sudo, the process becomes its owner."""
        found = Workspace.at(self.folder)
        if os.geteuid() == 0:
            from k8s_ucp.process import act_as_owner, place_of_sudo

            begun = os.path.lexists(found.states)
            if folder := found.states if begun else place_of_sudo(found.root):
                act_as_owner(folder, self.console.say)
        if found.root not in self._looked_at:
            _refuse_undecodable(found)
            _refuse_unreadable(found)
            _refuse_tracked(found)
            self._looked_at.add(found.root)
        return found

    @property
    def console(self) -> Console:
        from k8s_ucp.cli.console import Console

        return Console(quiet=self.quiet, verbose=self.verbose, color=self.color)

    def show_list(
        self,
        output: Output | ListOutput,
        data: Any,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        none: str = "",
        spare: Container[str] = (),
    ) -> None:
        """Print data in the requested format; columns and rows: the same data as a table.

        none: message instead of a table without rows. spare: columns that a narrow terminal lacks.
        """
        from k8s_ucp.cli.console import table

        console = self.console
        if output is ListOutput.name:
            if data:
                console.data("\n".join(each["name"] for each in data))
        elif output != Output.table:
            console.data(notation(data, output))
        elif none and not rows:
            console.say(none)
        else:
            console.data(table(columns, rows, width=console.width, spare=spare))


def _refuse_undecodable(workspace: Workspace) -> None:
    """Refuse a path that no text file can contain, such as kubeconfigs. Raises UsageError."""
    path = str(workspace.root)
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the path of the workspace is not valid UTF-8: {path!r}",
            next="rename the folder, or choose another workspace: --workspace DIR",
        ) from error


def _refuse_unreadable(workspace: Workspace) -> None:
    """Refuse state that another user's command wrote, as under sudo. Raises UcpError."""
    if os.geteuid() != 0:
        from k8s_ucp.preflight.foreign_workspace import refuse_unreadable

        refuse_unreadable(workspace)


def _refuse_tracked(workspace: Workspace) -> None:
    """Refuse state from a clone: programs that its author chose would run. Raises UcpError.

    State of a topology that was started here is in no repository.
    """
    from k8s_ucp.git.tracked import may_have_state, tracked_state

    if not may_have_state(workspace.root):
        return
    if found := tracked_state(workspace.root):
        inside = ("-C", workspace.root) if workspace.root != Path.cwd() else ()
        raise UcpError(
            f"{', '.join(found)} in {workspace.root} came with a git repository, whose author "
            "could choose the programs that ucp runs from there",
            next=f"{command_line('git', *inside, 'rm', '-r', *found)} (with --cached, if it is "
            "yours: the files are kept)",
        )


def with_given_options(advice: str, given: Mapping[str, str]) -> str:
    """Add global options to the commands in an advice, so that they work from here.

    given: the global options of this command line that select workspace and topology, with values.
    """

    def complete(found: re.Match[str]) -> str:
        flags = [command_line(flag, value) for flag, value in given.items() if flag not in found[0]]
        return " ".join([found["command"], *flags]) + found["rest"]

    return _COMMAND.sub(complete, advice) if given else advice


_COMMAND = re.compile(
    r"(?P<command>(?<![\w/.-])ucp (?:api|app|board|check|claim|cloud|clusters|completion|destroy"
    r"|diff|doctor|env|events|get|graph|help|history|kubeconfig|logs|mirror|open|promote|reconciler"
    r"|recreate|render|rollback|start|status|stop|team|tools|upgrade|version)\b"
    r"(?: (?:add|argocd|fault|forget|import|install|ledger|list|new|prune|remove|render|reset|run"
    r"|secrets)\b)?"
    r"(?: --(?:delete-data|delete-repos|fix|keep-core|plan|rehearse|takeover|yes)\b"
    r"|(?: --[a-z-]+(?:[= ](?:'[^']*'|-(?!\S)|(?!-)[\w./,:=-]*[\w/]))?))*)"
    r"(?P<rest>(?:(?! ucp )[^;,`\n])*)"
)
"""A command with its flags, each with its value unless it has none; then come its arguments, or the
rest of the sentence up to the next command."""


def declare(help: str | None = None) -> typer.Typer:
    """A Typer for one command module: plain help texts (rich takes 30 ms to load), no extras.

    help: of a command with sub-commands.
    """
    found = typer.Typer(
        help=help,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
    )
    if help:
        # Typer would treat a single sub-command as the command itself.
        found.callback()(lambda: None)
    return found


def examples(*lines: str) -> str:
    """The end of a help page (`epilog`): command lines as they are, without line breaks."""
    return "\n".join(("\b", "Examples:", *(f"  {each}" for each in lines)))


def option(flag: str, metavar: str | None, help: str, *others: str, **settings: Any) -> Any:
    """An option. metavar: placeholder for its value in the help. others: further names of it."""
    return typer.Option(flag, *others, metavar=metavar, help=help, **settings)


def invocation(ctx: typer.Context) -> Invocation:
    """The global options, wherever on the command line they were given."""
    found = ctx.find_root().obj
    assert isinstance(found, Invocation)
    return found


def plan_invocation(
    ctx: typer.Context, output: Output, *, plan: bool, flag: str = "--plan"
) -> Invocation:
    """The global options of a command with --plan or --dry-run. Raises UsageError for -o without.

    Otherwise a program would take the text of a run, which changes things, for data.
    """
    if output is not Output.table and not plan:
        raise UsageError(
            f"-o {output} applies to {flag} only: what a run does is reported as text",
            next=f"add {flag} to print what it would do, or omit -o to do it",
        )
    return invocation(ctx)


class Output(StrEnum):
    """-o"""

    table = "table"
    json = "json"
    yaml = "yaml"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Output format: table, json or yaml.")
]


class ListOutput(StrEnum):
    """-o of a command that lists things with names."""

    table = "table"
    json = "json"
    yaml = "yaml"
    name = "name"


ListOutputOption = Annotated[
    ListOutput,
    typer.Option(
        "-o", "--output", help="Output format: table, json, yaml, or name (a name per line)."
    ),
]

PlanOption = Annotated[
    bool,
    typer.Option(
        "--plan", help="Print what would be done and why, with what would be lost; change nothing."
    ),
]
PlanOutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="With --plan: table, json or yaml.")
]

TakeoverOption = Annotated[
    bool,
    typer.Option(
        "--takeover",
        help="Take over the topology from the core that manages it now, after waiting until "
        "that one has stopped its writers.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def notation(data: Any, output: Output | ListOutput) -> str:
    """The data as JSON or YAML text."""
    if output == Output.json:
        return json.dumps(data, indent=2)
    from k8s_ucp import yaml_io

    # As kubectl prints YAML: scripts find a value in the line of its key.
    return yaml_io.dump(data, width=sys.maxsize)
