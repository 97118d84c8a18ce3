"""The `ucp` command: global options, lazy loading of commands, the only exception handler.

`ucp --help` must respond within 100 ms, so this module imports typer and the table below, nothing
more: a command's module is imported when the command is called or its help is requested.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from k8s_ucp.cli.command import VERSION, Invocation, with_given_options
from k8s_ucp.errors import UcpError, advise_space
from k8s_ucp.workspace import advise_writable

OK, BUG, INTERRUPTED = 0, 3, 130


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


def _load(name: str, global_options: list[Any]) -> Any:
    # Garbage collection during imports finds nothing, and takes 5 % of a command's startup.
    gc.disable()
    try:
        module = import_module(COMMANDS[name].module)
    finally:
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
    except UcpError as error:
        from k8s_ucp.cli.console import harmless

        error.next = _advise_ownership(error.__cause__) or error.next or _advise_space_of(error)
        if error.next:
            error.next = with_given_options(error.next, _given)
        sys.stderr.write(f"ucp: {harmless(str(error))}\n")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("ucp: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        return _leave_quietly()
    except Exception as error:  # noqa: BLE001 (the last handler: any other exception is a bug)
        return _failed(error, arguments)


_given: dict[str, str] = {}
"""The given global options of this run, for error messages."""

_UNWRITABLE = (errno.EROFS, errno.EACCES)
_LIMITS = {
    errno.EMFILE: "ulimit -n 4096",
    errno.ENFILE: "close programs: the machine's limit of open files is reached",
    errno.EAGAIN: "raise the limit of processes and threads (ulimit -u), or end some of them",
    errno.ENOMEM: "close programs: the machine has too little memory",
    errno.EIO: "check the disk: dmesg lists its errors",
}
"""Limits and errors of the machine that a command can meet anywhere, with advice."""
_NO_THREAD = "can't start new thread"


def _advise_ownership(error: BaseException | None) -> str | None:
    """Advice if access was denied to what another user's command wrote to a workspace."""
    if not isinstance(error, PermissionError):
        return None
    from k8s_ucp.preflight.foreign_workspace import advise_ownership

    return advise_ownership(error)


def _advise_space_of(error: UcpError) -> str | None:
    """Advice if a full disk is the cause of an error."""
    return advise_space(error.__cause__) if isinstance(error.__cause__, OSError) else None


def _advise_on_machine(error: OSError) -> str | None:
    """Advice for an error of the machine; None: the error is a bug."""
    if error.errno in _UNWRITABLE:
        return advise_writable(Path(str(error.filename or "")))
    return advise_space(error) or _LIMITS.get(error.errno or 0)


def _failed(error: Exception, arguments: Sequence[str]) -> int:
    """Print usage errors of typer in our format; anything unexpected is a bug, with a report."""
    if str(error) == _NO_THREAD:  # Python's error lacks the number of the system's.
        error = OSError(errno.EAGAIN, _NO_THREAD)
    if isinstance(error, OSError) and error.errno == errno.EIO and _is_unread():
        return UcpError.exit_code
    if isinstance(error, PermissionError) and (advice := _advise_ownership(error)):
        _write_error(f"{error.filename}: {error.strerror}", advice)
        return UcpError.exit_code
    if isinstance(error, OSError) and (advice := _advise_on_machine(error)):
        where = f"{error.filename}: " if error.filename else ""
        _write_error(f"{where}{error.strerror}", advice)
        return UcpError.exit_code
    if isinstance(error, typer.TyperException):
        text = error.format_message()
        if text.startswith("Usage:"):  # `ucp` alone: the message is the help text
            sys.stderr.write(text + "\n")
            return error.exit_code
        _write_usage_error(error, text, arguments)
        return error.exit_code
    from k8s_ucp.cli.failures.bug_report import summary, write_report

    report = write_report(error, sys.argv)
    _write_error(
        f"this is a bug in ucp: {summary(error)}",
        f"see {report}" if report else "run it again with -v",
    )
    return BUG


def _write_error(text: str, advice: str) -> None:
    from k8s_ucp.cli.console import harmless

    sys.stderr.write(harmless(f"ucp: {text}\n  next: {advice}") + "\n")


def _write_usage_error(error: typer.TyperException, text: str, arguments: Sequence[str]) -> None:
    advice = _familiar(error, text, arguments) or _complete(error, text, arguments)
    if advice:  # a name that only looks alike is not what was meant: create, recreate
        text = text.partition(" Did you mean")[0].partition(" (Possible options")[0]
        text = text.partition(" Choose from:")[0]
        advice = with_given_options(advice, _given)
    else:
        advice = _usage_advice(error, arguments)
    # The option parser's name for a number with limits.
    _write_error(text.replace("a valid int range", "a valid number"), advice)


def _familiar(error: typer.TyperException, text: str, arguments: Sequence[str]) -> str | None:
    """The command line with our name of a command or option, if it has another tool's."""
    from k8s_ucp.cli.failures import familiar_words

    context: Any = getattr(error, "ctx", None)
    if context is None:
        return None
    if option := getattr(error, "option_name", None):
        known = {flag for each in context.command.params for flag in each.opts}
        return familiar_words.correct_option(arguments, option, known)
    if not (word := familiar_words.unknown_command(text)):
        return None
    group = context.command
    return familiar_words.correct_command(
        arguments, word, context.command_path, group.commands, group.invoke_without_command
    ) or familiar_words.respelled(arguments, word, text)


def _complete(error: typer.TyperException, text: str, arguments: Sequence[str]) -> str | None:
    """What a command line with a missing or superfluous argument was meant to be, if known."""
    from k8s_ucp.cli.failures import wrong_arguments

    context: Any = getattr(error, "ctx", None)
    if context is None:
        return None
    if option := getattr(error, "option_name", None):
        parameters = context.command.params
        return wrong_arguments.without_flag(arguments, option, parameters, context)
    if words := wrong_arguments.extra_arguments(text):
        options = {flag: each for each in context.command.params for flag in each.opts}
        return wrong_arguments.with_flags(arguments, words, options, context)
    if text.startswith("Missing argument"):
        return wrong_arguments.one_of(context.command_path, getattr(error, "param", None), context)
    if text.startswith("Missing command"):
        return wrong_arguments.sub_command(context.command_path, context.command.commands)
    return None


def _usage_advice(error: typer.TyperException, arguments: Sequence[str]) -> str:
    """What to type after a usage error: for an option before its command, the right order."""
    context: Any = getattr(error, "ctx", None)
    if context is None:  # an option without its value
        return f"{_command_path(arguments)} --help"
    path, option = context.command_path, getattr(error, "option_name", None)
    commands = getattr(context.command, "commands", {})
    name = next((each for each in arguments if each in commands), "")
    if option and name:
        command = commands[name] if context.parent else _load(name, [])
        if any(option in each.opts for each in command.params):
            return f"put the options of {name} after it: {path} {name} {option} …"
    return f"{path} --help"


def _command_path(arguments: Sequence[str]) -> str:
    """The command and sub-command that the arguments call."""
    path, commands = "ucp", dict[str, Any](COMMANDS)
    for each in arguments:
        if each in commands:
            command = _load(each, []) if path == "ucp" else commands[each]
            path, commands = f"{path} {each}", getattr(command, "commands", {})
    return path


def _is_unread() -> bool:
    """Whether our terminal was closed, as under a shell that had left us in the background."""
    from k8s_ucp.cli.console import silence_closed_terminal

    return silence_closed_terminal()


def _leave_quietly() -> int:
    """The reader of stdout has gone (`ucp clusters | head -1`), so nothing more is written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    main()
