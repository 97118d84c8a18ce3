"""The apps that an import adds, and those that turn out not to be addable."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.imports.environment_mapping import ImportRequest
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, NotImportable

NAMED = 12
"""Maximum number of apps or environments that a message names."""
_OF_ONE_CHART = re.compile(r"^failed to fetch the charts that the chart \S+ depends on")
"""A host that can't be reached is one line for all charts that need it."""


@dataclass(frozen=True)
class Candidate:
    """An app to add, with the flags of an equivalent `ucp app add`; nothing is fetched yet."""

    finding: DiscoveredApp
    request: ImportRequest
    flags: AppFlags

    @property
    def name(self) -> str:
        return self.finding.name


@dataclass(frozen=True)
class ChosenApp:
    """An app that is added."""

    candidate: Candidate
    item: dict[str, Any]
    """Of ucp.yaml."""
    copies: contextlib.ExitStack
    """Removes the files that were copied for the app."""


@dataclass
class Selection:
    """found: what the repository has; an app that is left out moves to its refusals."""

    found: Discovery
    explicit: bool
    """The user named the apps: one that can't be added is an error."""
    choices: dict[str, ChosenApp] = field(default_factory=dict)
    _left_out: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """{(reason, advice): apps}"""

    def without(self, refused: Collection[str]) -> str:
        """Flags of the import that add all but these apps; empty if it can't add any other."""
        if not (others := [each for each in self.choices if each not in refused]):
            return ""
        if self.explicit:
            more = " and the others" if len(others) > NAMED else ""
            return " ".join(f"--app {each}" for each in others[:NAMED]) + more
        return " ".join(f"--skip-app {each}" for each in self.choices if each in refused)

    @contextlib.contextmanager
    def proposing_others(self) -> Iterator[None]:
        """Let an error that is about some of the apps propose to add the others."""
        try:
            yield
        except UcpError as error:
            if error.apps and (flags := self.without(error.apps)):
                what = "it" if len(error.apps) == 1 else "them"
                error.next = "; ".join(filter(None, [error.next, f"or leave {what} out: {flags}"]))
            raise

    @property
    def items(self) -> dict[str, dict[str, Any]]:
        """{app: its item of ucp.yaml}"""
        return {name: each.item for name, each in self.choices.items()}

    def leave_out(self, finding: DiscoveredApp, error: NotImportable | UcpError) -> None:
        """List an app with the reason, and remove its copies. Raises UsageError if it was named."""
        rest = "--app for the others" if self.explicit else "--app NAME, once corrected"
        why = why_not(error, f"the same command with {rest}")
        if self.explicit:
            raise UsageError(f"{finding.name}: {why.reason}", next=why.advice) from error
        self.found = refused(self.found, finding, why)
        reason = _OF_ONE_CHART.sub("failed to fetch chart dependencies", why.reason)
        self._left_out.setdefault((reason, why.advice), []).append(finding.name)
        if choice := self.choices.pop(finding.name, None):
            choice.copies.__exit__(type(error), error, None)

    def reasons(self) -> Mapping[str, str]:
        """{why apps were left out: what to do}. Raises UsageError if none is left."""
        lines = {
            f"{', '.join(apps)} {'is' if len(apps) == 1 else 'are'} not added: "
            f"{reason.removeprefix(f'{apps[0]}: ')}": advice
            for (reason, advice), apps in self._left_out.items()
        }
        if not self.choices:
            advice = set(lines.values())
            if len(advice) > 1:
                raise UsageError("\n".join(by_advice(lines)))
            raise UsageError("\n  ".join(lines), next=next(iter(advice), None))
        return lines


def by_advice(reasons: Mapping[str, str]) -> list[str]:
    """Texts with reasons and what to do, which is said once. reasons: {reason: what to do}."""
    lines: dict[str, list[str]] = {}
    for reason, advice in reasons.items():
        lines.setdefault(advice, []).append(reason)
    return ["\n  ".join([*each, f"next: {advice}"]) for advice, each in lines.items()]


def why_not(error: NotImportable | UcpError, usual: str) -> NotImportable:
    """Why an app can't be taken that was found: what it is made of can't be fetched, or read.

    usual: the advice if the error has none.
    """
    if isinstance(error, NotImportable):
        return error
    return NotImportable(" ".join(error.message.split()), error.next or usual)


def refused(found: Discovery, finding: DiscoveredApp, error: NotImportable) -> Discovery:
    """The discovery with an app among those that can't be added."""
    return replace(
        found,
        findings=tuple(each for each in found.findings if each is not finding),
        refusals=(*found.refusals, error.refusal(finding.name, finding.where)),
    )
