"""Folders of tests and fixtures are passed over."""

from __future__ import annotations

from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    application,
    found,
    overlay,
    refusal,
)


def test_folders_of_tests_are_not_searched_but_named() -> None:
    fixtures = {
        "cmd/testdata/web/all.yaml": CONFIG,
        "pkg/_testdata/argo.yaml": application("old", {"chart": "old", "repoURL": "https://a.org"}),
        "test/e2e/kustomization.yaml": overlay("all.yaml"),
        "pkg/fixtures/web/Chart.yaml": CHART,
        "e2e-tests/backup/all.yaml": CONFIG,
        "docs/tests/readme.yaml": "title: none\n",
    }
    there = found({"web/all.yaml": CONFIG, **fixtures})
    assert [each.where for each in there.findings] == ["web"]
    told = refusal(there, "tests")
    assert told.reason == (
        "folders with tests are not searched: cmd/testdata, e2e-tests, pkg/_testdata and 2 more"
    )
    assert told.advice == "ucp app add NAME cmd/testdata/FOLDER, for an app in it"
    # Where there is nothing else, the user means them.
    assert {each.where for each in found(fixtures).findings} == {
        "cmd/testdata/web",
        "e2e-tests/backup",
        "pkg/fixtures/web/Chart.yaml",
        "pkg/_testdata/argo.yaml:1",
        "test/e2e",
    }


def test_applications_may_deploy_folders_of_tests() -> None:
    declared = application("smoke", {"path": "tests/smoke"})
    there = found({"argo/smoke.yaml": declared, "tests/smoke/all.yaml": CONFIG})
    assert [(each.name, each.path) for each in there.findings] == [("smoke", "tests/smoke")]


def test_an_app_or_a_folder_of_go_code_is_not_a_folder_of_tests() -> None:
    files = {"apps/test/all.yaml": CONFIG, "common/a.go": "", "test/e2e/crd/all.yaml": CONFIG}
    there = found(files)
    assert [each.where for each in there.findings] == ["apps/test"]
    assert refusal(there, "tests").where == "test/e2e"
