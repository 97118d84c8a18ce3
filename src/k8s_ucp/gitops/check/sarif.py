"""Findings as SARIF 2.1.0, which forges show at the lines of a change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib import metadata
from typing import Any
from urllib.parse import quote

from k8s_ucp import __version__
from k8s_ucp.check_rules import RULES, Rule
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.suppressions import IgnoredFinding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(
    findings: Iterable[CheckFinding],
    ignored: Iterable[IgnoredFinding],
    repositories: Sequence[str],
    *,
    pages: str | None = None,
) -> Mapping[str, Any]:
    """One run per checked repository; paths are relative to the repository's root.

    pages: base URL of the project's documentation.
    """
    found, suppressed = list(findings), list(ignored)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [_run(each, found, suppressed, pages) for each in repositories],
    }


def _run(
    repository: str, findings: list[CheckFinding], ignored: list[IgnoredFinding], pages: str | None
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
                "rules": [_rule(each, pages) for each in RULES.values()],
            }
        },
        "automationDetails": {"id": f"ucp-check/{repository}/"},
        "columnKind": "unicodeCodePoints",
        "results": list(results.values()),
    }


def documentation(distribution: str = "k8s-ucp") -> str | None:
    """URL of the project's documentation from the package metadata, or None."""
    try:
        urls = metadata.metadata(distribution).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    named = dict(each.split(", ", 1) for each in urls if ", " in each)
    return named.get("Documentation")


def _rule(rule: Rule, pages: str | None) -> Mapping[str, Any]:
    # Absolute or none: a relative URL would point into the repository that was checked.
    link = {"helpUri": f"{pages.rstrip('/')}/{rule.page}"} if pages else {}
    return {
        "id": rule.id,
        "name": "".join(each.capitalize() for each in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {
            "text": f"{rule.fix} ({rule.page})",
            "markdown": f"{rule.what} {rule.why}\n\n**Fix:** {rule.fix}\n\n{_ignoring(rule)}",
        },
        **link,
        "defaultConfiguration": {"level": rule.severity},
    }


def _ignoring(rule: Rule) -> str:
    if rule.ignorable == "never":
        return "It can't be ignored."
    if rule.ignorable == "topology":
        return "It can be ignored in `checks.ignore` of ucp.yaml, since it breaks other apps."
    return f"To ignore it, add this comment: `# ucp: ignore {rule.id} REASON`."


def _result(finding: CheckFinding, suppressions: list[Mapping[str, str]]) -> Mapping[str, Any]:
    location = {
        "artifactLocation": {"uri": quote(finding.file), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"ucpFinding/v1": _key(finding)},
        **({"suppressions": suppressions} if suppressions else {}),
    }


def _key(finding: CheckFinding) -> str:
    """Fingerprint of a finding that doesn't change when its line moves.

    A fault in a base that all environments use is one result.
    """
    words = (finding.repository, finding.rule, finding.file, finding.object, finding.message)
    return sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]
