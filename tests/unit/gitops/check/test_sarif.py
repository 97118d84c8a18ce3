"""SARIF 2.1.0 output: what its schema requires, and what forges read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.check_rules import RULES
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.sarif import documentation, sarif
from k8s_ucp.gitops.check.suppressions import IgnoredFinding

WARNING = CheckFinding(
    "apps",
    "apps/web/overlays/stage",
    "Deployment web: the image a/b has no tag",
    "image-untagged",
    "Deployment/web",
    "warning",
    file="apps/web/base/my web.yaml",
    line=12,
)
ERROR = CheckFinding(
    "apps", "apps/b/overlays/stage", "the host h is taken", "host-taken", file="x.yaml"
)
CORE = CheckFinding(
    "core", "bootstrap/a.yaml", "no path", "application-missing-path", file="a.yaml"
)


def log(*ignored: IgnoredFinding) -> Any:
    found = sarif([WARNING, ERROR, CORE], ignored, ["core", "apps"])
    return json.loads(json.dumps(found))


def test_the_structure_matches_the_schema() -> None:
    found = log(IgnoredFinding(WARNING, "known", "ucp.yaml", in_source=False))
    assert found["version"] == "2.1.0"
    assert found["$schema"].endswith("sarif-2.1.0.json")
    assert {each["automationDetails"]["id"] for each in found["runs"]} == {
        "ucp-check/core/",
        "ucp-check/apps/",
    }
    for run in found["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"] and driver["version"]
        ids = [each["id"] for each in driver["rules"]]
        assert len(ids) == len(set(ids)) == len(RULES)
        for rule in driver["rules"]:
            # The project has no documentation URL, so the text of the page is included.
            assert "helpUri" not in rule
            assert "**Fix:**" in rule["help"]["markdown"]
            assert rule["shortDescription"]["text"] and rule["fullDescription"]["text"]
            assert rule["help"]["text"]
            assert rule["defaultConfiguration"]["level"] in ("error", "warning")
        for result in run["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["level"] in ("error", "warning", "note", "none")
            assert result["message"]["text"]
            [location] = result["locations"]
            place = location["physicalLocation"]
            uri = place["artifactLocation"]["uri"]
            assert not urlsplit(uri).scheme and not uri.startswith("/") and " " not in uri
            assert place["region"]["startLine"] >= 1
            assert all(isinstance(each, str) for each in result["partialFingerprints"].values())


def test_results_are_in_the_run_of_their_repository() -> None:
    core, apps = log()["runs"]
    assert [each["ruleId"] for each in core["results"]] == ["application-missing-path"]
    assert [each["level"] for each in apps["results"]] == ["warning", "error"]
    place = apps["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "apps/web/base/my%20web.yaml"
    assert place["region"] == {"startLine": 12}


def test_ignored_findings_are_suppressed_results() -> None:
    other = CheckFinding("apps", "apps/c/overlays/stage", "m", "image-untagged", file="c.yaml")
    ignored = [
        IgnoredFinding(other, "known", "c.yaml:1", in_source=True),
        IgnoredFinding(CORE, "soon", "ucp.yaml", in_source=False),
    ]
    core, apps = json.loads(json.dumps(sarif([WARNING], ignored, ["core", "apps"])))["runs"]
    assert [each.get("suppressions") for each in apps["results"]] == [
        None,
        [{"kind": "inSource", "status": "accepted", "justification": "known"}],
    ]
    [suppression] = core["results"][0]["suppressions"]
    assert suppression["kind"] == "external" and suppression["justification"] == "soon"


def test_a_finding_in_a_base_is_one_result_for_all_environments() -> None:
    other = replace(WARNING, path="apps/web/overlays/prod")
    ignored = IgnoredFinding(other, "known", "ucp.yaml", in_source=False)
    [run] = sarif([WARNING, other], [], ["apps"])["runs"]
    assert len(run["results"]) == 1
    [run] = sarif([WARNING], [ignored], ["apps"])["runs"]
    assert [each.get("suppressions") for each in run["results"]] == [None]


def test_a_finding_keeps_its_fingerprint_when_its_line_moves() -> None:
    moved = replace(WARNING, line=99)
    [one] = sarif([WARNING], [], ["apps"])["runs"]
    [other] = sarif([moved], [], ["apps"])["runs"]
    assert one["results"][0]["partialFingerprints"] == other["results"][0]["partialFingerprints"]


def test_rules_link_to_the_projects_documentation_url() -> None:
    [run] = sarif([], [], ["apps"], pages="https://docs.example.org/ucp/")["runs"]
    first = run["tool"]["driver"]["rules"][0]
    assert first["helpUri"] == f"https://docs.example.org/ucp/docs/checks.md#{first['id']}"
    assert documentation("no-such-distribution") is None
