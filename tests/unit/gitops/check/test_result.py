"""The result of a check: its summary, blocking errors, and precedence of committed files."""

from __future__ import annotations

import pytest

from k8s_ucp.check_rules import Severity
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import CheckFinding, lines_of
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


def test_a_finding_that_environments_share_is_one_line() -> None:
    places = ("web/overlays/prod/web.yaml", "web/overlays/stage/web.yaml", "api/overlays/stage")
    found = [finding(f"apps/{each}", "error") for each in (*places, "web/base")]
    assert lines_of(found) == [
        "error: apps: apps/web/overlays/{prod,stage}/web.yaml: m [image-untagged]",
        "error: apps: apps/api/overlays/stage: m [image-untagged]",
        "error: apps: apps/web/base: m [image-untagged]",
    ]
    assert lines_of([found[0], finding("apps/web/overlays/stage/web.yaml")]) == [
        "error: apps: apps/web/overlays/prod/web.yaml: m [image-untagged]",
        "warning: apps: apps/web/overlays/stage/web.yaml: m [image-untagged]",
    ]
