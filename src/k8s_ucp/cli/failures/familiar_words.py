"""Words of similar tools (argocd, kind, terraform, docker compose, …), and what ucp calls them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping, Sequence

COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(["apply", "bootstrap", "create", "deploy", "init", "install", "up"], "start"),
    "down": "stop",
    # The plan first: these delete more than their namesakes do elsewhere.
    **dict.fromkeys(["delete", "rm", "teardown", "uninstall"], "destroy --plan"),
    **dict.fromkeys(["describe", "info", "list", "ls", "ps"], "status"),
    "plan": "start --plan",
    **dict.fromkeys(["lint", "test", "validate"], "check"),
    **dict.fromkeys(["dashboard", "ui"], "board"),
    **dict.fromkeys(["credentials", "login", "password", "passwords", "secrets"], "get secrets"),
    "cluster": "clusters",
    "version": "--version",
    "help": "--help",
    "completion": "--install-completion",
    "watch": "status --watch",
    **dict.fromkeys(["restart", "sync"], "start"),
    "add": "app add",
    "import": "app import",
    **dict.fromkeys(["application", "applications", "apps"], "app list"),
    **dict.fromkeys(["environment", "environments", "envs"], "env list"),
    "teams": "team list",
    "claims": "claim list",
    "mirrors": "mirror list",
    **dict.fromkeys(["kustomize", "manifests", "template"], "render"),
}
"""Unknown command: what to type instead, without its arguments."""

_LISTING = ("get", "list", "ls", "show", "status")

SUBCOMMANDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(["create", "new", "register"], ("add", "new")),
    **dict.fromkeys(["delete", "deregister", "destroy", "rm"], ("remove", "forget")),
    **dict.fromkeys(_LISTING, ("list",)),
    "add": ("new",),
    **dict.fromkeys(["credentials", "password", "passwords", "secret"], ("secrets",)),
}
"""Unknown sub-command: possible names of it here, the first one that exists is meant."""

_CONFIRMATIONS = ("-y", "--assume-yes", "--auto-approve", "--non-interactive")

OPTIONS: Mapping[str, Sequence[str]] = {
    "--dry-run": ("--plan",),
    "--plan": ("--dry-run",),
    **dict.fromkeys(["--environment", "--target", "--to"], ("--env",)),
    **dict.fromkeys(["--environments", "--envs"], ("--env",)),
    **dict.fromkeys(["--image-tag", "--newtag"], ("--tag",)),
    **dict.fromkeys(_CONFIRMATIONS, ("--yes",)),
    **dict.fromkeys(["--format"], ("--output",)),
    "--json": ("--output=json",),
    "--yaml": ("--output=yaml",),
    **dict.fromkeys(["--tail"], ("--lines",)),
    **dict.fromkeys(["-w"], ("--watch",)),
    **dict.fromkeys(["--kustomize", "--folder", "--dir"], ("--path",)),
    **dict.fromkeys(["--git", "--url"], ("--repo",)),
}
"""Unknown option: possible names of it here, the first one that exists is meant."""

_ONE_SIMILAR = re.compile(r" Did you mean '([^',]+)'\?$")
_UNKNOWN_COMMAND = re.compile(r"No such command '([^']+)'")


def unknown_command(message: str) -> str | None:
    """The command that typer's error message says doesn't exist."""
    found = _UNKNOWN_COMMAND.match(message)
    return found and found[1]


def correct_command(
    arguments: Sequence[str], word: str, group: str, known: Container[str], alone: bool
) -> str | None:
    """The command line with our word for an unknown command; None: it isn't another tool's.

    group: the path of the command before it, such as "ucp env", with the commands `known`.
    alone: the group lists things when it is called without a command.
    """
    if group == "ucp":
        if word == "help" and (about := [each for each in arguments if each in known]):
            return f"ucp {about[0]} --help"
        return f"ucp {COMMANDS[word]}" if word in COMMANDS else None
    ours = _first(SUBCOMMANDS, word, known)
    if not ours and alone and word in _LISTING:
        return group
    return ours and _replaced(arguments, word, ours)


def respelled(arguments: Sequence[str], word: str, message: str) -> str | None:
    """The command line with the only similar command in typer's message; None for several."""
    found = _ONE_SIMILAR.search(message)
    return found and _replaced(arguments, word, found[1])


def correct_option(arguments: Sequence[str], word: str, known: Container[str]) -> str | None:
    """The command line with our word for an unknown option; None: it isn't another tool's.

    Without the option if it confirms a question and the command asks none. known: its options.
    """
    if word in (*_CONFIRMATIONS, "--yes") and "--yes" not in known:
        return f"ucp {shlex.join(each for each in arguments if each != word)}"
    ours = _first(OPTIONS, word, known)
    return ours and _replaced(arguments, word, ours)


def _first(table: Mapping[str, Sequence[str]], word: str, known: Container[str]) -> str | None:
    return next((each for each in table.get(word, ()) if each.partition("=")[0] in known), None)


def _replaced(arguments: Sequence[str], word: str, ours: str) -> str:
    """The command line with the first occurrence of a word replaced, also in `--word=value`."""
    line = list(arguments)
    for place, each in enumerate(line):
        if each == word or each.startswith(f"{word}="):
            line[place] = ours + each[len(word) :]
            break
    return f"ucp {shlex.join(line)}"
