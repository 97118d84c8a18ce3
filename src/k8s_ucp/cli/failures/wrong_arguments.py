"""What to type if a command line has an argument too many, or lacks one or a sub-command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \(([^ ]+)\)")
_TAG = re.compile(r"v?[0-9][\w.-]*")


def extra_argument(message: str) -> str | None:
    """The argument that typer's error message says is one too many."""
    found = _EXTRA.match(message)
    return found and found[1]


def with_flag(
    arguments: Sequence[str], word: str, options: Mapping[str, Any], context: Any
) -> str | None:
    """The command line with the flag that an extra argument lacks; None if it isn't evident.

    options: of the command, by flag.
    """
    environments = _completions(options.get("--env"), context)
    flag = "--env" if word in environments else "--tag" if _TAG.fullmatch(word) else ""
    if flag not in options or flag in arguments or word not in arguments:
        return None
    # The last one: an app may be called like an environment.
    place = len(arguments) - 1 - [*reversed(arguments)].index(word)
    return f"ucp {shlex.join([*arguments[:place], flag, *arguments[place:]])}"


def one_of(path: str, argument: Any, context: Any) -> str | None:
    """The command with what a missing argument can be; None if that isn't known."""
    found = _completions(argument, context)
    return f"{path} {argument.make_metavar(context)}, one of: {', '.join(found)}" if found else None


def _completions(parameter: Any, context: Any) -> list[str]:
    """What a shell would propose for an argument or option."""
    if parameter is None:
        return []
    return [each.value for each in parameter.shell_complete(context, "") if each.value]


def sub_command(path: str, commands: Mapping[str, Any]) -> str | None:
    """The command that a group without its sub-command means: its list, or its only one."""
    if "list" in commands:
        return f"{path} list"
    return f"{path} {next(iter(commands))}" if len(commands) == 1 else None
