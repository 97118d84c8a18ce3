"""Faults that rules report, and the findings made from them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from k8s_ucp.check_rules import RULES, Rule, RuleId, Severity
from k8s_ucp.errors import some_of


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
    included_in: RuleId | None = None
    """A fault of this rule about the same object says as much, unless it is ignored."""


def invalid_field(path: str, message: str) -> Fault:
    """A field that the API server rejects. path: such as spec.replicas."""
    return Fault("field-invalid", message, field=path)


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
    included_in: RuleId | None = field(default=None, compare=False)

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
_OF_APP = re.compile(r"^apps/([^/]+)/")
_SHARED: tuple[RuleId, ...] = ("build-failed",)
"""Rules whose equal findings in several apps have one cause, such as a missing program."""


def without_consequences(findings: Iterable[CheckFinding]) -> list[CheckFinding]:
    """The findings without those that another one about the same object includes."""
    found = list(findings)
    known = {(each.repository, each.path, each.object, each.rule) for each in found}
    return [
        each
        for each in found
        if not each.included_in
        or (each.repository, each.path, each.object, each.included_in) not in known
    ]


def apps_of(findings: Iterable[CheckFinding]) -> set[str]:
    """The apps in whose folders there are findings."""
    found = (_OF_APP.match(each.path) for each in findings if each.repository == "apps")
    return {each[1] for each in found if each}


def lines_of(findings: Iterable[CheckFinding], *, located: bool = False) -> list[str]:
    """A line for each finding; one for the environments of an app in which it is the same.

    located: with the file and line to fix.
    """
    alike: dict[CheckFinding, list[CheckFinding]] = {}
    for each in findings:
        alike.setdefault(_without_environment(each), []).append(each)
    return [_line(common, found, located=located) for common, found in alike.items()]


def _without_environment(finding: CheckFinding) -> CheckFinding:
    """What the finding has in common with those of other environments, or also of other apps."""
    found = _OVERLAY.match(finding.path)
    if not found:
        return finding
    own = re.compile(rf"(/overlays/){re.escape(found[2])}(?![\w.-])")
    path = "" if finding.rule in _SHARED else own.sub(r"\1*", finding.path, 1)
    return replace(finding, path=path, message=own.sub(r"\1*", finding.message))


def _line(common: CheckFinding, found: Sequence[CheckFinding], *, located: bool) -> str:
    names = [match[2] for each in found if (match := _OVERLAY.match(each.path))]
    message = common.message
    if names:
        message = message.replace("/overlays/*", f"/overlays/{_in_braces(names)}")
    paths = some_of(_joined([each.path for each in found]))
    files = some_of(_joined([f"{each.file}:{each.line}" for each in found]))
    return str(replace(common, path=paths, message=message)) + (f" ({files})" if located else "")


def _joined(paths: Iterable[str]) -> list[str]:
    """The paths, one for those that differ only in the environment."""
    alike: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        found = _OVERLAY.match(path)
        start, rest = (found[1], path[found.end() :]) if found else (path, "")
        alike.setdefault((start, rest), []).append(found[2] if found else "")
    return [start + _in_braces(names) + rest for (start, rest), names in alike.items()]


def _in_braces(names: Sequence[str]) -> str:
    several = list(dict.fromkeys(names))
    return f"{{{','.join(several)}}}" if len(several) > 1 else several[0]
