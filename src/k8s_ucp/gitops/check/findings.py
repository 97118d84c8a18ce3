"""Faults that rules report, and the findings made from them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from k8s_ucp.check_rules import RULES, Rule, RuleId, Severity


@dataclass(frozen=True)
class Fault:
    """What a rule finds, wherever the rule looks."""

    rule: RuleId
    message: str
    path: str = ""
    """File or folder in the repository."""
    object: str = ""
    """`Kind/name`, where it is about one object."""
    field: str = ""
    """Field of the object, such as spec.ports[0].port."""
    value: str = ""
    """What is written at the place, to find its line."""
    denied: bool = False
    """An API server refuses it: an error, whatever the rule is otherwise."""


@dataclass(frozen=True, order=True)
class CheckFinding:
    """One thing that is wrong in a repository."""

    repository: str
    """`core` or `apps`."""
    path: str
    """File, or folder of what was built."""
    message: str
    rule: RuleId
    object: str = ""
    severity: Severity = "error"
    file: str = field(default="", compare=False)
    """The file to fix, as far as it can be told."""
    line: int = field(default=1, compare=False)

    @property
    def about(self) -> Rule:
        return RULES[self.rule]

    @property
    def blocks(self) -> bool:
        return self.severity == "error"

    @property
    def text(self) -> str:
        """Without the repository, which whoever pushes knows."""
        return f"{self.path}: {self.message} [{self.rule}]"

    def __str__(self) -> str:
        return f"{self.severity}: {self.repository}: {self.text}"
