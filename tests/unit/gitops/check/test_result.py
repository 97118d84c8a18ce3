"""The result of a check: its summary, blocking errors, and precedence of committed files."""

from __future__ import annotations

import pytest

from k8s_ucp.check_rules import Severity
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.repositories import SHOWN, CheckResult, refuse
from k8s_ucp.gitops.check.suppressions import IgnoredFinding


def finding(path: str, severity: Severity = "warning") -> CheckFinding:
    return CheckFinding("apps", path, "m", "image-untagged", severity=severity)


def ignored(path: str) -> IgnoredFinding:
    return IgnoredFinding(finding(path), "known", "ucp.yaml", in_source=False)


def test_the_summary_counts_findings_by_severity() -> None:
    assert CheckResult([]).summary == "no problems found"
    found = [finding("a", "error"), finding("b"), finding("c")]
    assert CheckResult(found, [ignored("d")]).summary == "1 error, 2 warnings, 1 ignored"


def test_only_errors_block() -> None:
    refuse(CheckResult([finding("a")]), "what")
    many = [finding(f"p{number:03}", "error") for number in range(SHOWN + 5)]
    with pytest.raises(UcpError) as caught:
        refuse(CheckResult([finding("a"), *many]), "what")
    assert caught.value.message.startswith("what:\nerror: apps: p000: m [image-untagged]\n")
    assert caught.value.message.endswith("... and 5 more")
    assert "warning" not in caught.value.message


def test_results_of_committed_files_override_those_of_rendered_files() -> None:
    committed = CheckResult([finding("a")], [ignored("b")], ["n"], ["one", "two"])
    rendered = CheckResult([finding("b"), finding("c")], [ignored("a"), ignored("d")], [], ["two"])
    both = committed.over(rendered)
    assert [each.path for each in both.findings] == ["a", "c"]
    assert [each.finding.path for each in both.ignored] == ["b", "d"]
    assert (both.notes, both.unused) == (["n"], ["two"])
