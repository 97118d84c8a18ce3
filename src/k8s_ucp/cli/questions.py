"""Questions on the terminal, such as those of `ucp start` without ucp.yaml.

The only user of questionary. Everything that is asked can also be given by flags; no decision is
made here. Ctrl-C or Ctrl-D at any question raises KeyboardInterrupt, before anything is written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import questionary
from prompt_toolkit.output import create_output

from k8s_ucp.errors import UsageError
from k8s_ucp.providers import DEFAULT, PROVIDERS
from k8s_ucp.topology import APP_WORDS, APPS, NAME_PATTERN
from k8s_ucp.topology.rules.combinations import environments_of
from k8s_ucp.topology.rules.names import reads_as_text


@dataclass(frozen=True)
class Answers:
    """The user's choices."""

    core: str
    environments: tuple[str, ...]
    apps: tuple[str, ...]
    provider: str = DEFAULT
    """Provider of the environments' clusters."""
    ports: tuple[int, int] | None = None
    """HTTP and HTTPS ports of a core whose nodes accept traffic, if 80 and 443 are not
    available."""


class NoTerminal(UsageError):
    """A question can't be asked. what: needs the answer."""

    def __init__(self, what: str, *, next: str) -> None:
        super().__init__(f"{what} needs a terminal (stdin and stderr; TERM not dumb)", next=next)


def can_ask() -> bool:
    """Whether questions are possible: stdin and stderr are a terminal that can redraw lines."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def require_consent(
    question: str, refusal: str, *, next: str, default: bool = False, needed: bool = True
) -> None:
    """Ask a person to agree; where nobody can be asked, go on only if no consent is needed.

    refusal: the message if the answer is no. next: how to agree without being asked.
    Raises UsageError.
    """
    if not can_ask():
        if needed:
            raise NoTerminal("the confirmation", next=next)
        return
    if not confirm(question, default=default):
        raise UsageError(refusal)


def ask_topology(proposed: Answers, cores: Sequence[str], clusters: Sequence[str]) -> Answers:
    """Ask for the core's provider, environments and apps. Enter accepts the proposal.

    cores, clusters: available providers of the core and of environments; a single one isn't asked.
    """
    core = cores[0]
    if len(cores) > 1:
        core = _ask_provider("Provider of the core cluster:", cores, proposed.core)
    environments = _ask(
        questionary.text,
        "Environments, in the order of promotion:",
        default=", ".join(proposed.environments),
        validate=_wrong_environments,
        instruction="(a cluster each)",
    )
    if not split_names(environments):
        # Apps run on environments' clusters only.
        return Answers(core, (), (), core)
    # Pods of a core can't reach control planes that listen on loopback.
    fed = environments_of(PROVIDERS[core])
    usable = [each for each in clusters if each in fed]
    provider = usable[0] if usable else core
    if len(usable) > 1:
        provider = _ask_provider("Provider of the environments' clusters:", usable, core)
    words = {each.name: f"{each.name}: {APP_WORDS[each.name]}" for each in APPS.values()}
    apps = choose_many("Apps to deploy to the environments:", words, proposed.apps)
    return Answers(core, tuple(split_names(environments)), tuple(apps), provider)


def _ask_provider(question: str, providers: Sequence[str], proposed: str) -> str:
    words = {each: f"{each}: {PROVIDERS[each].offer}" for each in providers}
    return choose_one(question, words, proposed if proposed in providers else None)


def ask_existing(name: str) -> str:
    """Ask what to do with an existing core: use, recreate or stop."""
    words = {
        "use": "use it and keep what runs on it",
        "recreate": "delete and recreate it with all clusters that `ucp stop` deletes",
        "stop": "stop the topology and exit",
    }
    return choose_one(f"The core cluster {name} already exists:", words)


def choose_many(
    question: str, choices: Mapping[str, str], proposed: Collection[str] | None = None
) -> list[str]:
    """Choose several of {value: label}; all are preselected unless `proposed` names some."""
    found = _ask(
        questionary.checkbox,
        question,
        choices=[
            questionary.Choice(words, value=value, checked=proposed is None or value in proposed)
            for value, words in choices.items()
        ],
        instruction="(space toggles, Enter confirms)",
    )
    return [str(each) for each in found]


def choose_one(question: str, choices: Mapping[str, str], proposed: str | None = None) -> str:
    """Choose one of {value: label}."""
    found = _ask(
        questionary.select,
        question,
        choices=[questionary.Choice(words, value=value) for value, words in choices.items()],
        default=proposed,
        instruction="(arrows select, Enter confirms)",
    )
    return str(found)


def confirm(question: str, *, default: bool = True) -> bool:
    """Ask yes or no."""
    return bool(_ask(questionary.confirm, question, default=default))


def typed(question: str) -> str:
    """Ask for a text."""
    return str(_ask(questionary.text, question)).strip()


def split_names(text: str) -> list[str]:
    """Names separated by commas or blanks."""
    return [each for each in re.split(r"[,\s]+", text) if each]


def _wrong_environments(text: str) -> bool | str:
    """True, or what is invalid."""
    names = split_names(text)
    for each in names:
        if each == "core":
            return "'core' is reserved for the core cluster"
        if not reads_as_text(each):
            return f"YAML does not read '{each}' as text, but as a number, a boolean or the like"
        if not re.fullmatch(NAME_PATTERN, each):
            return (
                f"'{each}' is not a valid name: use lower-case letters, digits and '-', at "
                "most 40 characters"
            )
    if len(set(names)) < len(names):
        return "environment names must be unique"
    return True


def _ask(prompt: Any, question: str, **settings: Any) -> Any:
    # To stderr, since stdout may be a file.
    asked = prompt(question, output=create_output(sys.stderr), **settings)
    try:
        return asked.unsafe_ask()
    except EOFError:
        raise KeyboardInterrupt from None
