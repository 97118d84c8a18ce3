"""Words of similar tools (kubectl, argocd, kind, terraform, …), and what ucp calls them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Mapping, Sequence

from k8s_ucp.errors import command_line

COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(["apply", "bootstrap", "create", "deploy", "init", "install", "up"], "start"),
    **dict.fromkeys(["reconcile", "refresh", "restart", "run", "sync"], "start"),
    "down": "stop",
    # The plan first: these delete more than their namesakes do elsewhere.
    **dict.fromkeys(["clean", "cleanup", "delete", "purge", "remove", "reset"], "destroy --plan"),
    **dict.fromkeys(["rm", "teardown", "uninstall"], "destroy --plan"),
    **dict.fromkeys(["describe", "health", "info", "list", "ls", "ps"], "status"),
    **dict.fromkeys(["show", "top", "view"], "status"),
    **dict.fromkeys(["plan", "preview"], "start --plan"),
    **dict.fromkeys(["approve", "release"], "promote --help"),
    **dict.fromkeys(["hold", "undo", "unhold"], "rollback --help"),
    "restore": "recreate",
    "argocd": "open argocd",
    **dict.fromkeys(["debug", "diagnose", "support"], "doctor"),
    **dict.fromkeys(["lint", "test", "validate"], "check"),
    **dict.fromkeys(["console", "dashboard", "gui", "ui", "web"], "board"),
    **dict.fromkeys(["credentials", "login", "password", "passwords"], "get secrets"),
    **dict.fromkeys(["secret", "secrets"], "get secrets"),
    **dict.fromkeys(["docs", "man"], "--help"),
    "autocomplete": "completion --help",
    **dict.fromkeys(["wait", "watch"], "status --watch"),
    **dict.fromkeys(["config", "context", "ctx", "use"], "kubeconfig --help"),
    **dict.fromkeys(["port-forward", "proxy"], "open argocd"),
    "tree": "graph",
    "add": "app add",
    "import": "app import",
    **dict.fromkeys(["build", "export", "kustomize", "manifests", "template"], "render"),
}
"""Unknown command: what to type instead, without its arguments."""

NOUNS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ["app", "application", "applications", "apps"], ("app list", "app add", "app remove")
    ),
    **dict.fromkeys(
        ["env", "environment", "environments", "envs", "stages"],
        ("env list", "env add", "env remove"),
    ),
    **dict.fromkeys(["team", "teams"], ("team list", "team add", "team remove")),
    **dict.fromkeys(["claim", "claims"], ("claim list", "claim new", "claim remove")),
    **dict.fromkeys(["mirror", "mirrors"], ("mirror list", "mirror add", "mirror remove")),
    **dict.fromkeys(["cluster", "clusters"], ("clusters",)),
    **dict.fromkeys(["event", "events"], ("events",)),
    **dict.fromkeys(["all", "components", "nodes", "pods"], ("status",)),
    "kubeconfig": ("kubeconfig",),
}
"""What verbs of kubectl apply to: the commands that list, add and remove it."""

_VERBS: Mapping[str, int] = {
    **dict.fromkeys(["describe", "export", "get", "list", "ls", "show", "view"], 0),
    **dict.fromkeys(["add", "create", "new"], 1),
    **dict.fromkeys(["delete", "remove", "rm"], 2),
}
"""Which of these commands a verb means."""

_WITHOUT_GROUP = (
    "board", "check", "diff", "events", "history", "logs", "promote", "rollback", "status",
)  # fmt: skip
"""Commands that similar tools have below `app`, `env` or `open`."""

_LISTING = ("get", "list", "ls", "show", "status")
_SYNCING = ("reconcile", "refresh", "sync", "wait")
"""What Argo CD does on its own; `ucp status APP` says whether it has, or why not."""

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
    "-e": ("--env",),
    **dict.fromkeys(["--image-tag", "--newtag", "--version", "-t"], ("--tag",)),
    "--provider": ("--cluster", "--core"),
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
_SIMILARITY = 0.8
"""Least similarity of a misspelled command: typer's own limit takes `git` for `get`."""
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
    index = list(arguments).index(word) if word in arguments else len(arguments)
    if group == "ucp":
        if meant := _verb_first(word, arguments[index + 1 :]) or COMMANDS.get(word):
            return f"ucp {meant}"
        return f"ucp {NOUNS[word][0]}" if word in NOUNS else None
    if group == "ucp get" and word in NOUNS:
        return f"ucp {_verb_first('get', arguments[index:])}"
    names = [each for each in arguments[index + 1 :] if not each.startswith("-")]
    if group in ("ucp app", "ucp env") and word in (*_LISTING, *_SYNCING) and names:
        return command_line("ucp", "status", names[0])
    if word in _WITHOUT_GROUP and word not in _LISTING:
        return command_line("ucp", word, *arguments[index + 1 :])
    ours = _first(SUBCOMMANDS, word, known)
    if ours == "secrets" and names and arguments[index + 1] == names[0]:
        # It prints all of them; a name would be one argument too many.
        return _replaced([*arguments[: index + 1], *arguments[index + 2 :]], word, ours)
    if not ours and alone and word in _LISTING:
        return group
    return ours and _replaced(arguments, word, ours)


def _verb_first(verb: str, words: Sequence[str]) -> str | None:
    """Our command for a verb and the words after it, `delete env stage`; None if there is none."""
    commands = NOUNS.get(next(iter(words), ""), ())
    number = _VERBS.get(verb, len(commands))
    if number >= len(commands):
        return None
    names = [each for each in words[1:] if not each.startswith("-")]
    if number == 0 and names and commands[0] in ("app list", "env list"):
        return command_line("status", names[0])
    return f"{commands[number]} {command_line(*words[1:]) if number else ''}".rstrip()


def respelled(arguments: Sequence[str], word: str, message: str) -> str | None:
    """The command line with the only similar command in typer's message; None for several."""
    found = _ONE_SIMILAR.search(message)
    if not found or difflib.SequenceMatcher(None, word, found[1]).ratio() < _SIMILARITY:
        return None
    return _replaced(arguments, word, found[1])


def correct_option(arguments: Sequence[str], word: str, known: Container[str]) -> str | None:
    """The command line with our word for an unknown option; None: it isn't another tool's.

    Without the option if it confirms a question and the command asks none. known: its options.
    """
    if word in (*_CONFIRMATIONS, "--yes") and "--yes" not in known:
        return command_line("ucp", *(each for each in arguments if each != word))
    ours = _first(OPTIONS, word, known)
    return ours and _replaced(arguments, word, ours)


def _first(table: Mapping[str, Sequence[str]], word: str, known: Container[str]) -> str | None:
    return next((each for each in table.get(word, ()) if each.partition("=")[0] in known), None)


def _replaced(arguments: Sequence[str], word: str, ours: str) -> str:
    """The command line with the first occurrence of a word replaced, also in `--word=value`."""
    line = list(arguments)
    for index, each in enumerate(line):
        if each == word or each.startswith(f"{word}="):
            line[index] = ours + each[len(word) :]
            break
    return command_line("ucp", *line)
