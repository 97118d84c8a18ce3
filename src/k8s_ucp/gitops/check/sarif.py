"""Findings as SARIF 2.1.0, which forges show at the lines of a change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from k8s_ucp import __version__
from k8s_ucp.check_rules import RULES, Rule
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.suppressions import IgnoredFinding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "tag:k8s-ucp.io,2026:"
"""SARIF wants an absolute URI, and the pages have no address of their own."""


def sarif(
    findings: Iterable[CheckFinding], ignored: Iterable[IgnoredFinding], repositories: Sequence[str]
) -> Mapping[str, Any]:
    """A run for each repository that was checked: paths are relative to its root."""
    found, suppressed = list(findings), list(ignored)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [_run(each, found, suppressed) for each in repositories],
    }


def _run(
    repository: str, findings: list[CheckFinding], ignored: list[IgnoredFinding]
) -> Mapping[str, Any]:
    results: dict[str, Mapping[str, Any]] = {}
    for each in findings:
        if each.repository == repository:
            results.setdefault(_key(each), _result(each, []))
    for entry in ignored:
        if entry.finding.repository == repository:
            kind = "inSource" if entry.in_source else "external"
            suppression = {"kind": kind, "status": "accepted", "justification": entry.reason}
            results.setdefault(_key(entry.finding), _result(entry.finding, [suppression]))
    return {
        "tool": {
            "driver": {
                "name": "ucp check",
                "version": __version__,
                "rules": [_rule(each) for each in RULES.values()],
            }
        },
        "automationDetails": {"id": f"ucp-check/{repository}/"},
        "columnKind": "unicodeCodePoints",
        "results": list(results.values()),
    }


def _rule(rule: Rule) -> Mapping[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(each.capitalize() for each in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {
            "text": f"{rule.fix} ({rule.page})",
            "markdown": f"{rule.why}\n\n{rule.fix}",
        },
        "helpUri": f"{_HELP}{rule.page}",
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: CheckFinding, suppressions: list[Mapping[str, str]]) -> Mapping[str, Any]:
    place = {
        "artifactLocation": {"uri": quote(finding.file), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"ucpFinding/v1": _key(finding)},
        **({"suppressions": suppressions} if suppressions else {}),
    }


def _key(finding: CheckFinding) -> str:
    """The same for the same finding, wherever its line has moved to.

    What a base brings to all environments is one result.
    """
    words = (finding.repository, finding.rule, finding.file, finding.object, finding.message)
    return sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]
