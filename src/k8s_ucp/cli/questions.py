"""The questions that `ucp start` asks when there is no ucp.yaml. The only user of questionary.

Everything asked has a flag, so nothing here decides anything: answers in, answers out. Ctrl-C at
any question raises KeyboardInterrupt, and nothing has been written by then.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import questionary
from prompt_toolkit.output import create_output

from k8s_ucp.topology import APPS, NAME_PATTERN


@dataclass(frozen=True)
class Answers:
    """What was chosen."""

    core: str
    environments: tuple[str, ...]
    apps: tuple[str, ...]


def can_ask() -> bool:
    """A person sits there: what we show is seen, what they type is read."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_topology(proposed: Answers) -> Answers:
    """Where the core runs, which environments, which apps. Enter takes what is proposed."""
    core = _ask(
        questionary.select,
        "Where does the core cluster run?",
        choices=[
            questionary.Choice(
                "embedded: control planes as processes of this machine, workloads simulated",
                value="embedded",
            )
        ],
        instruction="(the only one that is built so far; Enter takes it)",
    )
    environments = _ask(
        questionary.text,
        "Which environments, in the order of promotion?",
        default=", ".join(proposed.environments),
        validate=_wrong_environments,
        instruction="(names with commas between; each becomes a cluster) ",
    )
    apps = _ask(
        questionary.checkbox,
        "Which apps run on them?",
        choices=[
            questionary.Choice(
                f"{app.name}: {app.image}:{app.tag}",
                value=app.name,
                checked=app.name in proposed.apps,
            )
            for app in APPS.values()
        ],
        instruction="(space changes, Enter takes)",
    )
    return Answers(core, tuple(split_names(environments)), tuple(apps))


def confirm(question: str, *, default: bool = True) -> bool:
    """A yes or no."""
    return bool(_ask(questionary.confirm, question, default=default))


def split_names(text: str) -> list[str]:
    """Names with commas or blanks between."""
    return [each for each in re.split(r"[,\s]+", text) if each]


def _wrong_environments(text: str) -> bool | str:
    """True, or what is wrong."""
    names = split_names(text)
    for each in names:
        if each == "core":
            return "'core' is the core cluster"
        if not re.fullmatch(NAME_PATTERN, each):
            return f"'{each}': lower-case letters, digits and '-', at most 40 characters"
    if len(set(names)) < len(names):
        return "a name is there twice"
    return True


def _ask(prompt: Any, question: str, **settings: Any) -> Any:
    # People read stderr: stdout may be a file.
    return prompt(question, output=create_output(sys.stderr), **settings).unsafe_ask()
