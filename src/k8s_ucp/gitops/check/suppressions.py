"""Ignored findings: in ucp.yaml, in a comment, by an annotation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from k8s_ucp.check_rules import DENY_WARNINGS, RULES
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.objects.item import IGNORE, Object, named
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.yaml_text import part, plain_text
from k8s_ucp.topology.parts import Checks, IgnoreEntry
from k8s_ucp.topology.problems import nearest

_COMMENT = re.compile(r"(?:^|\s)#+\s*ucp:\s*ignore\b[ \t]*(\S*)[ \t]*(.*)")
_APP = re.compile(r"apps/([^/]+)/")


@dataclass(frozen=True, order=True)
class IgnoredFinding:
    """A finding that was suppressed."""

    finding: CheckFinding
    reason: str
    where: str
    """Where the suppression is: a file and line, an annotation or ucp.yaml."""
    in_source: bool
    """In a file of the repository, not in ucp.yaml."""

    def __str__(self) -> str:
        return (
            f"ignored: {self.finding.repository}: {self.finding.text}: {self.reason} ({self.where})"
        )


@dataclass(frozen=True)
class Suppression:
    """A suppression in a file. line: the line that it applies to, 0 for a whole object."""

    path: str
    """For a comment its file, for an annotation the overlay or file that was checked."""
    rule: str
    reason: str
    where: str
    line: int = 0
    object: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for an object in all environments, so that one match marks all of them as used."""
        return (self.rule, self.object) if self.object else (self.rule, self.where)

    def matches(self, finding: CheckFinding) -> bool:
        if finding.rule != self.rule:
            return False
        if self.line:
            return (finding.file, finding.line) == (self.path, self.line)
        return (finding.path, finding.object) == (self.path, self.object)


def judged(finding: CheckFinding, checks: Checks) -> CheckFinding:
    """The finding with the severity that `checks.deny` of ucp.yaml sets."""
    if {finding.rule, DENY_WARNINGS} & set(checks.deny):
        return replace(finding, severity="error")
    return finding


def comment_suppressions(files: Mapping[str, bytes]) -> list[Suppression]:
    """Comments `# ucp: ignore <rule> <reason>` in a repository's YAML files."""
    return [
        each
        for path, content in files.items()
        if b"ucp:" in content
        if path.endswith((".yaml", ".yml")) or path.rpartition("/")[2] in KUSTOMIZATIONS
        if path != "ucp.yaml"
        for each in _comments(path, content)
    ]


def _comments(path: str, content: bytes) -> Iterator[Suppression]:
    try:
        lines = plain_text(content, path).splitlines()
    except UcpError:
        return
    about = 0
    for number, line in enumerate(lines, 1):
        # A cheap test first: manifests of engines have tens of thousands of lines.
        if "ucp:" in line and (found := _COMMENT.search(line.rstrip())):
            about = max(about, number)
            while about <= len(lines) and lines[about - 1].lstrip().startswith("#"):
                about += 1
            yield Suppression(path, found[1], found[2], f"{path}:{number}", about)


def annotation_suppressions(path: str, item: Object) -> Iterator[Suppression]:
    """Suppressions in an object's annotation. path: as in the findings."""
    text = part(part(item, "metadata"), "annotations").get(IGNORE)
    for line in str(text or "").splitlines():
        rule, _, reason = line.strip().partition(":")
        if rule:
            where = f"annotation of {named(item)} in {path}"
            yield Suppression(path, rule.strip(), reason.strip(), where, object=named(item))


def refused(suppression: Suppression, repository: str) -> str | None:
    """Why a suppression in a file is invalid; None if it is valid."""
    rule = RULES.get(suppression.rule)
    if rule is None:
        near = nearest(suppression.rule, RULES)
        hint = f"; did you mean '{near}'?" if near else ""
        return f"unknown rule '{suppression.rule}'{hint}"
    if not suppression.reason:
        return f"{rule.id} is not ignored without a reason"
    if rule.ignorable == "never":
        return f"{rule.id} can't be ignored ({rule.page})"
    if rule.ignorable == "topology" and repository == "apps":
        return f"{rule.id} breaks other apps: it can be ignored in ucp.yaml only ({rule.page})"
    return None


class Triage:
    """Separates the findings of one check into active and ignored ones."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._used: set[IgnoreEntry] = set()
        self.findings: set[CheckFinding] = set()
        self.ignored: set[IgnoredFinding] = set()
        self.refused: list[str] = []
        """Invalid suppressions, with the reason."""
        self.unmatched: list[str] = []
        """Suppressions that match no finding."""

    def take(
        self, repository: str, findings: Iterable[CheckFinding], written: Iterable[Suppression]
    ) -> None:
        """Sort the findings of a repository. written: the suppressions in its files."""
        counting: list[Suppression] = []
        for each in written:
            if why := refused(each, repository):
                self.refused.append(f"{repository}: {each.where}: {why}")
            else:
                counting.append(each)
        used: set[tuple[str, ...]] = set()
        for finding in findings:
            judgement = judged(finding, self._checks)
            found = next((each for each in counting if each.matches(finding)), None)
            entry = next((e for e in self._checks.ignore if matches(e, finding)), None)
            if found:
                used.add(found.key)
                self.ignored.add(
                    IgnoredFinding(judgement, found.reason, found.where, in_source=True)
                )
            elif entry:
                self._used.add(entry)
                self.ignored.add(
                    IgnoredFinding(judgement, entry.reason, "ucp.yaml", in_source=False)
                )
            else:
                self.findings.add(judgement)
        self.unmatched += [
            f"{repository}: {each.where}: ignores {each.rule}, which is not found there"
            for each in counting
            if each.key not in used
        ]

    @property
    def unused(self) -> list[str]:
        """Entries of ucp.yaml that matched nothing."""
        return [
            f"ucp.yaml: checks.ignore: {_words(each)} matches no finding"
            for each in self._checks.ignore
            if each not in self._used
        ]


def matches(entry: IgnoreEntry, finding: CheckFinding) -> bool:
    """The ucp.yaml entry applies to this finding."""
    if entry.rule != finding.rule or finding.about.ignorable == "never":
        return False
    app = _APP.match(finding.path) if finding.repository == "apps" else None
    if entry.app and (app is None or app[1] != entry.app):
        return False
    if entry.file and not any(fnmatchcase(e, entry.file) for e in (finding.path, finding.file)):
        return False
    return not entry.object or entry.object == finding.object


def _words(entry: IgnoreEntry) -> str:
    parts = (entry.app, entry.file, entry.object)
    return " ".join([entry.rule, *(each for each in parts if each)])
