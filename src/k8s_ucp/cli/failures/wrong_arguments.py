"""What to type if an argument is missing, one too many, or given as an option."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from k8s_ucp.errors import command_line

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.+)\)")
_ENVIRONMENT = ("env", "environment")
_VALUES = ("--env", "--app", "--core", "--cluster", "--topology")
"""Options whose values are often typed without the flag, in the order of trying."""
_TAG = re.compile(r"v?[0-9][\w.-]*")
_PERHAPS_TAG = re.compile(r"latest|main|stable|[\w.-]*[0-9][\w.-]*")
"""A tag, if the environment is given."""


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
    values = {flag: _completions(options[flag], context) for flag in _VALUES if flag in options}
    line = list(arguments)
    if _are_environment_and_tag(words, line, options) and not values["--env"]:
        values["--env"] = [words[0]]  # of another repository (--repo), whose names aren't known
    if len(words) == 2 and words[0] in _ENVIRONMENT and words[0] in line:
        if context.command_path == "ucp destroy":
            return command_line("ucp", "env", "remove", words[1])
        line.remove(words[0])
        values, words = {"--env": [words[1]]}, words[1:]
    own = _completions(next(iter(_arguments(context.command.params)), None), context)
    for word in words:
        if word not in line:
            return None
        # The last one: an app may be called like an environment.
        index = len(line) - 1 - line[::-1].index(word)
        if added := _as_options(word, line, values, options, own):
            line[index : index + 1] = added
        elif not _put_flag_before(word, line, values.get("--env", ()), own):
            return None
    return command_line("ucp", *line)


def _are_environment_and_tag(
    words: Sequence[str], line: Sequence[str], options: Mapping[str, Any]
) -> bool:
    return (
        len(words) == 2
        and words[0] not in _ENVIRONMENT
        and "=" not in words[0]
        and {"--env", "--tag"} <= options.keys()
        and not _is_given("--env", line)
        and bool(_TAG.fullmatch(words[1]) and not _TAG.fullmatch(words[0]))
    )


def _as_options(
    word: str,
    line: Sequence[str],
    values: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
    own: Sequence[str],
) -> list[str]:
    """A superfluous word as an option with its value; empty if it isn't evident which.

    values: of options, by flag. own: values that the command's argument can have.
    """
    name, equals, value = word.partition("=")
    if equals and _TAG.fullmatch(value) and name in values.get("--env", ()) and "--tag" in options:
        return ["--env", name, "--tag", value]
    flag = next((flag for flag, known in values.items() if word in known), "")
    if value and f"--{name}" in options and not options[f"--{name}"].is_flag:
        flag, word = f"--{name}", value
    has_env = _is_given("--env", line) and word not in own and _PERHAPS_TAG.fullmatch(word)
    if not flag and (has_env or _TAG.fullmatch(word)):
        flag = "--tag" if "--tag" in options else "--to"
    again = flag in options and options[flag].multiple
    return [flag, word] if flag in options and (again or not _is_given(flag, line)) else []


def _put_flag_before(
    word: str, line: list[str], environments: Sequence[str], own: Sequence[str]
) -> bool:
    """Give an environment its flag if the word after it is the argument; whether it is."""
    environment = next((each for each in line if each in environments), "")
    if word not in own or not environment or environment in own or _is_given("--env", line):
        return False
    line.insert(line.index(environment), "--env")
    return True


def _is_given(flag: str, line: Sequence[str]) -> bool:
    return any(each.partition("=")[0] == flag for each in line)


def _arguments(parameters: Sequence[Any]) -> list[Any]:
    return [each for each in parameters if each.param_type_name == "argument"]


def without_flag(
    arguments: Sequence[str], option: str, parameters: Sequence[Any], context: Any
) -> str | None:
    """The command line with the value of an unknown option as an argument; None if it can't be one.

    parameters: of the command.
    """
    line = list(arguments)
    index = next((i for i, each in enumerate(line) if each.partition("=")[0] == option), None)
    if index is None:
        return None
    value = line[index].partition("=")[2] or next(iter(line[index + 1 :]), "")
    taken = _arguments(parameters)
    named = option == "--name" and any(each.name == "name" for each in taken)
    if not value or not (named or any(value in _completions(each, context) for each in taken)):
        return None
    line[index : index + (1 if "=" in line[index] else 2)] = [value]
    return command_line("ucp", *line)


def one_of(path: str, argument: Any, context: Any) -> str | None:
    """The command with the first value that a missing argument can have, and the other values.

    None if they aren't known.
    """
    first, *others = _completions(argument, context) or [""]
    if first and path.endswith(" remove"):  # none is proposed for deletion
        return f"{path} {argument.metavar} (known: {', '.join([first, *others])})"
    more = f" (or: {', '.join(others)})" if others else ""
    return f"{path} {command_line(first)}{more}" if first else None


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
