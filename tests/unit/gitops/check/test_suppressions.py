"""Triage of findings: denied and ignored in ucp.yaml, in comments and in annotations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from k8s_ucp.check_rules import RuleId
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.suppressions import Triage, annotation_suppressions, comment_suppressions
from k8s_ucp.topology.parts import Checks

WEB = "apps/web/overlays/stage"
FILE = "apps/web/base/web.yaml"


def finding(rule: RuleId = "image-untagged", **more: Any) -> CheckFinding:
    given: dict[str, Any] = {
        "repository": "apps",
        "path": WEB,
        "message": "m",
        "object": "Deployment/web",
        "severity": "warning",
        "file": FILE,
        "line": 3,
        **more,
    }
    return CheckFinding(rule=rule, **given)


def answered(
    *findings: CheckFinding,
    checks: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    item: Mapping[str, Any] | None = None,
    repository: str = "apps",
) -> Triage:
    found = Triage(Checks.model_validate(checks or {}))
    written = comment_suppressions({path: text.encode() for path, text in (files or {}).items()})
    written += annotation_suppressions(WEB, item) if item else ()
    found.take(repository, findings, written)
    return found


@pytest.mark.parametrize(
    ("deny", "severity"),
    [
        ([], "warning"),
        (["image-moving-tag"], "warning"),
        (["image-untagged"], "error"),
        (["warnings"], "error"),
    ],
)
def test_denied_warnings_become_errors(deny: list[str], severity: str) -> None:
    [found] = answered(finding(), checks={"deny": deny}).findings
    assert found.severity == severity
    assert found.blocks == (severity == "error")


@pytest.mark.parametrize(
    ("entry", "ignored"),
    [
        ({"app": "web"}, True),
        ({"app": "other"}, False),
        ({"app": "web", "rule": "image-moving-tag"}, False),
        ({"app": "web", "file": "apps/web/base/*"}, True),
        ({"file": WEB}, True),
        ({"app": "web", "file": "apps/web/overlays/prod"}, False),
        ({"app": "web", "object": "Deployment/web"}, True),
        ({"app": "web", "object": "Deployment/other"}, False),
    ],
)
def test_ignore_entries_of_the_topology_match_by_rule_app_and_file(
    entry: dict[str, str], ignored: bool
) -> None:
    entry = {"rule": "image-untagged", "reason": "known", **entry}
    found = answered(finding(), checks={"ignore": [entry]})
    assert bool(found.ignored) == ignored
    assert bool(found.findings) != ignored
    assert bool(found.unused) != ignored
    if ignored:
        [answer] = found.ignored
        assert (answer.reason, answer.where, answer.in_source) == ("known", "ucp.yaml", False)


@pytest.mark.parametrize(
    ("text", "ignored", "note"),
    [
        ("a:\n  b:\n    image: x # ucp: ignore image-untagged known\n", True, None),
        ("a:\n  # ucp: ignore image-untagged known\n  image: x\n", True, None),
        ("# ucp: ignore image-untagged known\n# more\n- image: x\n", True, None),
        ("# ucp: ignore image-untagged known\n\n- image: x\n", False, "not found there"),
        ("a:\nb:\nimage: x # ucp: ignore image-moving-tag known\n", False, "not found there"),
        ("a:\nb:\nimage: x # ucp: ignore image-untagged\n", False, "without a reason"),
        ("a:\nb:\nimage: x # ucp: ignore image-untaged known\n", False, "mean 'image-untagged'"),
        ("a:\nb:\nimage: x # ucp: ignore\n", False, "unknown rule ''"),
        ("a:\nb:\nimage: x#ucp: ignore image-untagged known\n", False, None),
    ],
)
def test_ignore_comments_apply_to_their_line(text: str, ignored: bool, note: str | None) -> None:
    found = answered(finding(), files={FILE: text})
    assert bool(found.ignored) == ignored
    assert bool(found.findings) != ignored
    notes = [*found.refused, *found.unmatched]
    assert (note is None) == (not notes)
    assert note is None or note in notes[0]


def annotated(text: str, name: str = "web") -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"k8s-ucp.io/ignore": text}}
    return {"kind": "Deployment", "metadata": metadata}


def test_ignore_annotations_apply_to_their_object() -> None:
    item = annotated("image-moving-tag: a\nimage-untagged: known\n")
    found = answered(finding(), finding("image-moving-tag"), item=item)
    assert {each.reason for each in found.ignored} == {"a", "known"}
    assert not found.findings and not found.refused and not found.unmatched
    other = answered(finding(), item=annotated("image-untagged: known", "other"))
    assert other.findings and "not found there" in other.unmatched[0]
    without = answered(finding(), item=annotated("image-untagged"))
    assert without.findings and "without a reason" in without.refused[0]


@pytest.mark.parametrize("repository", ["apps", "core"])
def test_findings_that_affect_other_apps_cannot_be_ignored_in_the_app_repository(
    repository: str,
) -> None:
    host = finding("host-taken", repository=repository, severity="error")
    files = {FILE: "a:\nb:\nc: d # ucp: ignore host-taken shared\n"}
    found = answered(host, files=files, repository=repository)
    assert bool(found.ignored) == (repository == "core")
    assert (repository == "core") or "in ucp.yaml only" in found.refused[0]
    entry = {"rule": "host-taken", "file": FILE, "reason": "shared"}
    assert answered(host, checks={"ignore": [entry]}, repository=repository).ignored


def test_findings_about_an_apps_permissions_cannot_be_ignored() -> None:
    away = finding("namespace-not-allowed", severity="error")
    comment = {FILE: "a:\nb:\nc: d # ucp: ignore namespace-not-allowed mine\n"}
    entry = {"rule": "namespace-not-allowed", "app": "web", "reason": "mine"}
    found = answered(
        away,
        files=comment,
        item=annotated("namespace-not-allowed: mine"),
        checks={"ignore": [entry]},
    )
    assert found.findings == {away}
    assert len([each for each in found.refused if "can't be ignored" in each]) == 2


@pytest.mark.parametrize(
    "text",
    [
        f"# ucp: ignore host-taken x{500_000 * ' '}y\n",
        100_000 * "# ucp: ignore host-taken\n",
    ],
    ids=["spaces", "lines"],
)
def test_long_comments_are_read_within_seconds(text: str) -> None:
    """Whoever pushes them would keep the push hook busy for hours."""
    began = time.process_time()
    comment_suppressions({"a.yaml": text.encode()})
    assert time.process_time() - began < 10
