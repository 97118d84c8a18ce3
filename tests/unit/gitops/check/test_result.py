"""The result of a check: its summary, blocking errors, and precedence of committed files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.check_rules import Severity
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import CheckFinding, lines_of, without_consequences
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


def test_an_environment_in_the_message_does_not_separate_lines() -> None:
    found = [
        CheckFinding(
            "apps",
            f"apps/b/overlays/{each}",
            f"h is already used by apps/a/overlays/{each}, not by apps/a/overlays/{each}-2",
            "host-taken",
        )
        for each in ("prod", "stage")
    ]
    assert lines_of(found[:1]) == [str(found[0])]
    both = [replace(each, message=each.message.partition(",")[0]) for each in found]
    assert lines_of(both) == [
        "error: apps: apps/b/overlays/{prod,stage}: h is already used by "
        "apps/a/overlays/{prod,stage} [host-taken]"
    ]
    assert len(lines_of(found)) == 2


def test_one_cause_of_failed_builds_is_one_line() -> None:
    places = ("a/overlays/prod", "a/overlays/stage", "b/overlays/stage")
    found = [CheckFinding("apps", f"apps/{each}", "no helm", "build-failed") for each in places]
    assert lines_of(found) == [
        "error: apps: apps/a/overlays/{prod,stage}, apps/b/overlays/stage: no helm [build-failed]"
    ]
    many = [replace(found[0], path=f"apps/app-{each}/overlays/prod") for each in range(9)]
    (line,) = lines_of(many)
    assert "apps/app-4/overlays/prod and 4 more: no helm" in line


def test_lines_name_the_files_to_fix() -> None:
    base = replace(finding("apps/a/overlays/prod"), file="apps/a/base/web.yaml", line=7)
    alike = [base, replace(base, path="apps/a/overlays/stage")]
    (line,) = lines_of(alike, located=True)
    assert line.endswith("overlays/{prod,stage}: m [image-untagged] (apps/a/base/web.yaml:7)")
    own = [replace(each, file=f"{each.path}/web.yaml") for each in alike]
    (line,) = lines_of(own, located=True)
    assert line.endswith("(apps/a/overlays/{prod,stage}/web.yaml:7)")
    other = [own[0], replace(own[1], line=8)]
    (line,) = lines_of(other, located=True)
    assert line.endswith("(apps/a/overlays/prod/web.yaml:7, apps/a/overlays/stage/web.yaml:8)")


def test_a_finding_is_left_out_only_beside_the_one_that_includes_it() -> None:
    taken = CheckFinding("apps", "apps/b/overlays/prod", "m", "host-taken", "Ingress/web")
    path = replace(taken, rule="host-path-duplicate", included_in="host-taken")
    assert without_consequences([taken, path]) == [taken]
    assert without_consequences([path]) == [path], "the other one is ignored"
    assert without_consequences([replace(path, included_in=None), taken])[1:] == [taken]
    assert len(without_consequences([taken, replace(path, object="Ingress/api")])) == 2
