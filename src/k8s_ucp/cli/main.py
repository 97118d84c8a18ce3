"""The `ucp` command: global options, lazy loading of commands, the only exception handler.

`ucp --help` must respond within 100 ms, so this module imports typer and the table below, nothing
more: a command's module is imported when the command is called or its help is requested.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from k8s_ucp.cli.command import VERSION, Invocation
from k8s_ucp.cli.failures.report import report_failure

OK, INTERRUPTED = 0, 130


@dataclass(frozen=True)
class CommandEntry:
    """Module of a command, and its line in `ucp --help`."""

    module: str
    help: str


COMMANDS: dict[str, CommandEntry] = {
    "start": CommandEntry(
        "k8s_ucp.cli.lifecycle.start", "Create or update everything in ucp.yaml."
    ),
    "stop": CommandEntry(
        "k8s_ucp.cli.lifecycle.stop", "Stop everything that is running; repositories are kept."
    ),
    "recreate": CommandEntry(
        "k8s_ucp.cli.lifecycle.recreate",
        "Recreate environments, or a lost core cluster.",
    ),
    "upgrade": CommandEntry(
        "k8s_ucp.cli.lifecycle.upgrade",
        "Upgrade components and clusters to newer versions.",
    ),
    "destroy": CommandEntry(
        "k8s_ucp.cli.lifecycle.destroy", "Delete a topology and its cloud resources."
    ),
    "status": CommandEntry(
        "k8s_ucp.cli.inspection.status", "Show clusters, components, environments, applications."
    ),
    "graph": CommandEntry(
        "k8s_ucp.cli.inspection.graph", "Draw the topology as mermaid, svg or dot."
    ),
    "doctor": CommandEntry("k8s_ucp.cli.inspection.doctor", "Find problems and how to fix them."),
    "board": CommandEntry(
        "k8s_ucp.cli.board", "Serve a page that shows the topology as it changes."
    ),
    "events": CommandEntry(
        "k8s_ucp.cli.inspection.events", "Print the Events of all clusters, ordered by time."
    ),
    "logs": CommandEntry("k8s_ucp.cli.inspection.logs", "Print a component's logs."),
    "promote": CommandEntry(
        "k8s_ucp.cli.promotion.promote", "Write an image tag to an environment."
    ),
    "rollback": CommandEntry(
        "k8s_ucp.cli.promotion.rollback", "Restore an earlier tag and hold the bad one."
    ),
    "history": CommandEntry("k8s_ucp.cli.promotion.history", "List the changes of an app's tags."),
    "clusters": CommandEntry(
        "k8s_ucp.cli.inspection.clusters", "List the clusters on this machine."
    ),
    "kubeconfig": CommandEntry(
        "k8s_ucp.cli.inspection.kubeconfig", "Print or merge a cluster's kubeconfig."
    ),
    "get": CommandEntry("k8s_ucp.cli.inspection.get", "Print users and passwords: get secrets."),
    "open": CommandEntry("k8s_ucp.cli.open", "Open a component in the browser: open argocd."),
    "mirror": CommandEntry(
        "k8s_ucp.cli.editing.mirror", "List, add, remove mirrored Secrets and ConfigMaps."
    ),
    "env": CommandEntry("k8s_ucp.cli.editing.environments", "List, add and remove environments."),
    "app": CommandEntry("k8s_ucp.cli.editing.apps", "List, add and remove apps."),
    "team": CommandEntry("k8s_ucp.cli.editing.teams", "List, add and remove teams."),
    "claim": CommandEntry("k8s_ucp.cli.editing.claims", "List, write and remove claims of a team."),
    "cloud": CommandEntry(
        "k8s_ucp.cli.inspection.cloud", "Inspect or reset the simulated cloud, or inject faults."
    ),
    "render": CommandEntry("k8s_ucp.cli.render", "Render both repositories to a folder."),
    "api": CommandEntry(
        "k8s_ucp.cli.inspection.api", "Render the resources of a claim: api render."
    ),
    "diff": CommandEntry(
        "k8s_ucp.cli.inspection.diff", "Compare ucp.yaml, the repositories and the clusters."
    ),
    "check": CommandEntry("k8s_ucp.cli.check", "Validate the files of both repositories."),
    "tools": CommandEntry("k8s_ucp.cli.tools", "Install, list or remove the pinned programs."),
    "reconciler": CommandEntry("k8s_ucp.cli.reconciler", "Run the controllers in the foreground."),
    "completion": CommandEntry(
        "k8s_ucp.cli.about.completion", "Print the completion script of a shell."
    ),
    "help": CommandEntry("k8s_ucp.cli.about.help", "Print the help page of a command."),
    "version": CommandEntry("k8s_ucp.cli.about.version", "Print the version."),
}
"""In the order of `ucp --help`."""


class LazyGroup(typer.core.TyperGroup):
    """Lists commands from the table; imports a command's module only to resolve that command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.add_command(typer.core.TyperCommand(name, help=entry.help, rich_markup_mode=None))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            found = _load(name, self.params)
        return name, found, rest

    def load(self, name: str) -> Any:
        """A command, without the global options."""
        return _load(name, [])


def _load(name: str, global_options: list[Any]) -> Any:
    module = import_module(COMMANDS[name].module)
    if not gc.isenabled():
        # Collections while the command runs don't search what was imported.
        gc.freeze()
        gc.enable()
    command = typer.main.get_command(module.app)
    command.name = name
    shared = [each for each in global_options if each.name in Invocation.__annotations__]
    _take_everywhere(command, shared)
    return command


def _take_everywhere(command: Any, options: list[Any]) -> None:
    """Accept global options after the command, too (`ucp status -q`), also for sub-commands."""
    for each in getattr(command, "commands", {}).values():
        _take_everywhere(each, options)
    taken = {flag for each in command.params for flag in each.opts}
    command.params += [each for each in options if not taken & set(each.opts)]


def _keep(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Store a global option in the Invocation; an absent one changes nothing."""
    root = ctx.find_root()
    if root.obj is None:
        root.obj = Invocation()
    if value not in (None, False) and not ctx.resilient_parsing:
        setattr(root.obj, str(param.name), not value if param.name == "color" else value)
        if param.name in ("folder", "topology"):
            root.obj.given[param.opts[0]] = str(value)
            _given.update(root.obj.given)
    return value


def _topology_names(incomplete: str) -> list[str]:
    from k8s_ucp.cli.topology_selection import topology_names

    return topology_names(incomplete)


def _show_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"{VERSION}\n")
        raise typer.Exit


app = typer.Typer(
    name="ucp",
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


@app.callback()
def _options(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            metavar="DIR",
            help="Workspace folder. Default: the current folder.",
            callback=_keep,
            expose_value=False,
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="NAME",
            help="Name of the topology, if the workspace has several.",
            callback=_keep,
            autocompletion=_topology_names,
            expose_value=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", help="Print errors only.", callback=_keep, expose_value=False
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="Print more details.", callback=_keep, expose_value=False
        ),
    ] = False,
    color: Annotated[
        bool,
        typer.Option(
            "--no-color",
            help="Disable colors (also: NO_COLOR=1).",
            callback=_keep,
            expose_value=False,
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            is_eager=True,
            callback=_show_version,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Start, inspect and stop a universal control plane: clusters managed by GitOps."""


def main() -> None:
    """Entry point of the `ucp` command."""
    # Garbage collection during imports finds nothing, and takes 5 % of a command's startup.
    gc.disable()
    # Nobody else may write to files that we create, since files in repositories would run as the
    # user; private files are created as such.
    os.umask(os.umask(0o077) | 0o022)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the caller closed it
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (used until the end)
    # Like stderr: names in repositories and paths may be no UTF-8, or not in the user's encoding.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    leave(run(sys.argv[1:]))


def leave(code: int) -> NoReturn:
    """End the process, also while its threads are busy.

    Python waits for threads that aren't daemons, but those of abandoned steps may hang in a library
    call. If a daemon thread is writing while the interpreter shuts down, the interpreter aborts
    (https://github.com/python/cpython/issues/129536). Without any threads, it would still take
    apart all modules, a tenth of a second after a start.
    """
    others = [each for each in threading.enumerate() if each is not threading.current_thread()]
    if not code and not all(each.daemon for each in others):
        sys.exit(code)
    if not others:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors are printed to stderr.

    0: done, 1: expected failure, 2: usage error, 3: bug, 130: interrupted.
    """
    _given.clear()
    try:
        code = typer.main.get_command(app).main(arguments, "ucp", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer returns this after Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else OK
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("ucp: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        return _leave_quietly()
    except Exception as error:  # noqa: BLE001 (the last handler: any unexpected one is a bug)
        return report_failure(error, arguments, typer.main.get_command(app), _given)


_given: dict[str, str] = {}
"""The given global options of this run, for error messages."""


def _leave_quietly() -> int:
    """The reader of stdout has gone (`ucp clusters | head -1`), so nothing more is written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    main()
