"""Faults that rules report, and the findings made from them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from k8s_ucp.check_rules import RULES, Rule, RuleId, Severity


@dataclass(frozen=True)
class Fault:
    """A violation of a rule, independent of the repository it is in."""

    rule: RuleId
    message: str
    path: str = ""
    """File or folder in the repository."""
    object: str = ""
    """`Kind/name` of the object; "" if the fault isn't about a single object."""
    field: str = ""
    """Field of the object, such as spec.ports[0].port."""
    value: str = ""
    """Text in the file, used to find the line."""
    denied: bool = False
    """The API server would reject it: an error, whatever the rule's severity is."""


@dataclass(frozen=True, order=True)
class CheckFinding:
    """One problem in a repository."""

    repository: str
    """`core` or `apps`."""
    path: str
    """File, or folder of the overlay that was built."""
    message: str
    rule: RuleId
    object: str = ""
    severity: Severity = "error"
    file: str = field(default="", compare=False)
    """The file to fix, if it could be determined."""
    line: int = field(default=1, compare=False)

    @property
    def about(self) -> Rule:
        return RULES[self.rule]

    @property
    def blocks(self) -> bool:
        return self.severity == "error"

    @property
    def text(self) -> str:
        """Without the repository's name, which is known to whoever pushes."""
        return f"{self.path}: {self.message} [{self.rule}]"

    def __str__(self) -> str:
        return f"{self.severity}: {self.repository}: {self.text}"


_OVERLAY = re.compile(r"^(apps/[^/]+/overlays/)([^/]+)")


def lines_of(findings: Iterable[CheckFinding]) -> list[str]:
    """A line for each finding; one for the environments of an app in which it is the same."""
    alike: dict[CheckFinding, list[str]] = {}
    for each in findings:
        found = _OVERLAY.match(each.path)
        path = _OVERLAY.sub(r"\1*", each.path)
        environments = alike.setdefault(replace(each, path=path), [])
        environments += [found[2]] if found else []
    lines = []
    for each, environments in alike.items():
        names = ",".join(environments)
        many = f"{{{names}}}" if len(environments) > 1 else names
        path = each.path.replace("/overlays/*", f"/overlays/{many}", 1) if names else each.path
        lines.append(str(replace(each, path=path)))
    return lines
