"""What every command file shares: how it is declared and what it gets from the global options.

A command file `cli/<name>.py` holds `app = declare()` and one function (or several, for a command
with sub-commands) under `@app.command()`. main.py's table names it; it is imported only when that
very command is called, so a file may import what its command needs at its top.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.cli.console import Console


@dataclass
class Invocation:
    """The global options of one call of `ucp`."""

    folder: Path = field(default_factory=Path.cwd)
    """--workspace"""
    topology: str | None = None
    """--topology"""
    quiet: bool = False
    verbose: bool = False
    color: bool = True

    @property
    def workspace(self) -> Workspace:
        return Workspace.at(self.folder)

    @property
    def console(self) -> Console:
        from k8s_ucp.cli.console import Console

        return Console(quiet=self.quiet, verbose=self.verbose, color=self.color)


def declare(help: str | None = None) -> typer.Typer:
    """A Typer for one command file: plain help texts (rich takes 30 ms to load), no extras."""
    return typer.Typer(
        help=help,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
    )


def invocation(ctx: typer.Context) -> Invocation:
    """The global options, from wherever on the command line they were given."""
    found = ctx.find_root().obj
    assert isinstance(found, Invocation)
    return found
