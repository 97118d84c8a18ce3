"""Prints why a command failed, and what to type next.

Imports nothing more at the top than main.py has: a command may fail because no file can be opened.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from k8s_ucp.cli.command import with_given_options
from k8s_ucp.errors import UcpError, advise_space
from k8s_ucp.workspace import UNWRITABLE, advise_writable

BUG = 3
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
    if error.errno in UNWRITABLE:
        return advise_writable(Path(str(error.filename or "")))
    return advise_space(error) or _LIMITS.get(error.errno or 0)


def report_failure(
    error: Exception, arguments: Sequence[str], group: Any, given: Mapping[str, str]
) -> int:
    """Print an error with what to type next; anything unexpected is a bug, with a report.

    group: all commands. given: as in `with_given_options`. Returns the exit code.
    """
    from k8s_ucp.cli.console import harmless, silence_closed_terminal

    if isinstance(error, UcpError):
        error.next = _advise_ownership(error.__cause__) or error.next or _advise_space_of(error)
        if error.next:
            error.next = with_given_options(error.next, given)
        sys.stderr.write(f"ucp: {harmless(str(error))}\n")
        return error.exit_code
    if str(error) == _NO_THREAD:  # Python's error lacks the number of the system's.
        error = OSError(errno.EAGAIN, _NO_THREAD)
    if isinstance(error, OSError) and error.errno == errno.EIO and silence_closed_terminal():
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
        _write_usage_error(error, text, arguments, group, given)
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


def _write_usage_error(
    error: typer.TyperException,
    text: str,
    arguments: Sequence[str],
    group: Any,
    given: Mapping[str, str],
) -> None:
    advice = _familiar(error, text, arguments) or _complete(error, text, arguments)
    if advice:  # a name that only looks alike is not what was meant: create, recreate
        text = text.partition(" Did you mean")[0].partition(" (Possible options")[0]
        text = text.partition(" Choose from:")[0]
        advice = with_given_options(advice, given)
    else:
        advice = _usage_advice(error, arguments, group)
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


def _usage_advice(error: typer.TyperException, arguments: Sequence[str], group: Any) -> str:
    """What to type after a usage error: for an option before its command, the right order."""
    context: Any = getattr(error, "ctx", None)
    if context is None:  # an option without its value
        return f"{_command_path(arguments, group)} --help"
    path, option = context.command_path, getattr(error, "option_name", None)
    commands = getattr(context.command, "commands", {})
    name = next((each for each in arguments if each in commands), "")
    if option and name:
        command = commands[name] if context.parent else group.load(name)
        if any(option in each.opts for each in command.params):
            return f"put the options of {name} after it: {path} {name} {option} …"
    return f"{path} --help"


def _command_path(arguments: Sequence[str], group: Any) -> str:
    """The command and sub-command that the arguments call."""
    path, commands = "ucp", group.commands
    for each in arguments:
        if each in commands:
            command = group.load(each) if path == "ucp" else commands[each]
            path, commands = f"{path} {each}", getattr(command, "commands", {})
    return path
