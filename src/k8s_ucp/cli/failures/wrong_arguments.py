"""What to type if an argument is missing, one too many, or given as an option."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_ucp.workspace import Workspace

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.+)\)")
_ENVIRONMENT = ("env", "environment")
_TAG = re.compile(r"v?[0-9][\w.-]*")


def extra_arguments(message: str) -> list[str]:
    """The arguments that typer's error message says are too many."""
    found = _EXTRA.match(message)
    return found[1].split() if found else []


def with_flags(
    arguments: Sequence[str], words: Sequence[str], options: Mapping[str, Any], context: Any
) -> str | None:
    """The command line with the flags that extra arguments lack; None if they aren't evident.

    options: of the command, by flag.
    """
    environments = _completions(options.get("--env"), context)
    call = context.find_root().obj
    topologies = Workspace.at(call.folder if call else Path()).started()
    line = list(arguments)
    if len(words) == 2 and words[0] in _ENVIRONMENT and words[0] in line:
        if context.command_path == "ucp destroy":
            return f"ucp env remove {shlex.quote(words[1])}"
        line.remove(words[0])
        environments, words = [words[1]], words[1:]
    for word in words:
        flag = "--env" if word in environments else "--tag" if _TAG.fullmatch(word) else ""
        flag = flag or ("--topology" if word in topologies else "")
        if flag not in options or flag in line or word not in line:
            return None
        # The last one: an app may be called like an environment.
        place = len(line) - 1 - line[::-1].index(word)
        line.insert(place, flag)
    return f"ucp {shlex.join(line)}"


def without_flag(
    arguments: Sequence[str], option: str, parameters: Sequence[Any], context: Any
) -> str | None:
    """The command line with the value of an unknown option as an argument; None if it can't be one.

    parameters: of the command.
    """
    line = list(arguments)
    place = next((i for i, each in enumerate(line) if each.partition("=")[0] == option), None)
    if place is None:
        return None
    value = line[place].partition("=")[2] or next(iter(line[place + 1 :]), "")
    taken = [each for each in parameters if each.param_type_name == "argument"]
    named = option == "--name" and any(each.name == "name" for each in taken)
    if not value or not (named or any(value in _completions(each, context) for each in taken)):
        return None
    line[place : place + (1 if "=" in line[place] else 2)] = [value]
    return f"ucp {shlex.join(line)}"


def one_of(path: str, argument: Any, context: Any) -> str | None:
    """The command with the first value that a missing argument can have, and the other values.

    None if they aren't known.
    """
    first, *others = _completions(argument, context) or [""]
    more = f" (or: {', '.join(others)})" if others else ""
    return f"{path} {shlex.quote(first)}{more}" if first else None


def _completions(parameter: Any, context: Any) -> list[str]:
    """What a shell would propose for an argument or option in the workspace of this call."""
    call = context.find_root().obj
    if parameter is None:
        return []
    # Completions look at the current folder and at the line that a shell passes.
    with contextlib.suppress(OSError), contextlib.chdir(call.folder if call else "."):
        return [each.value for each in parameter.shell_complete(context, "") if each.value]
    return []


def sub_command(path: str, commands: Mapping[str, Any]) -> str | None:
    """The command that a group without its sub-command means: its list, or its only one."""
    if "list" in commands:
        return f"{path} list"
    return f"{path} {next(iter(commands))}" if len(commands) == 1 else None
