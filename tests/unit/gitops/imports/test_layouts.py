"""Folders of tests, overlays that are variants, and kustomizations around a base."""

from __future__ import annotations

from k8s_ucp.cli.editing.imports.choices import proposed_flags
from k8s_ucp.cli.editing.imports.listing import refusal_rows
from k8s_ucp.gitops.imports.detection import detect
from k8s_ucp.gitops.imports.findings import RefusedApp
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    application,
    found,
    kustomized,
    overlay,
    place,
    refusal,
)


def test_folders_of_tests_are_not_searched_but_told() -> None:
    fixtures = {
        "cmd/testdata/web/all.yaml": CONFIG,
        "pkg/test-data/argo.yaml": application("old", {"chart": "old", "repoURL": "https://a.org"}),
        "test/e2e/kustomization.yaml": overlay("all.yaml"),
        "pkg/fixtures/web/Chart.yaml": CHART,
        "docs/tests/readme.yaml": "title: none\n",
    }
    there = found({"web/all.yaml": CONFIG, **fixtures})
    assert [each.where for each in there.findings] == ["web"]
    told = refusal(there, "tests")
    assert told.reason == (
        "folders with tests are not searched: cmd/testdata, pkg/fixtures, pkg/test-data and 1 more"
    )
    assert told.advice == "ucp app add NAME cmd/testdata/FOLDER, for an app in it"
    # Where there is nothing else, the user means them.
    assert {each.where for each in found(fixtures).findings} == {
        "cmd/testdata/web",
        "pkg/fixtures/web/Chart.yaml",
        "pkg/test-data/argo.yaml:1",
        "test/e2e",
    }


def test_applications_may_deploy_folders_of_tests() -> None:
    declared = application("smoke", {"path": "tests/smoke"})
    there = found({"argo/smoke.yaml": declared, "tests/smoke/all.yaml": CONFIG})
    assert [(each.name, each.path) for each in there.findings] == [("smoke", "tests/smoke")]


def test_a_test_that_uses_a_base_does_not_hide_the_app() -> None:
    files = {
        "kustomize/kustomization.yaml": overlay("base"),
        "kustomize/base/kustomization.yaml": overlay("all.yaml"),
        "kustomize/base/all.yaml": CONFIG,
        "kustomize/components/small/kustomization.yaml": "kind: Component\n",
        "kustomize/tests/small/kustomization.yaml": overlay("../../base"),
    }
    [only] = found(files).findings
    assert (only.path, only.name) == ("kustomize", "shop")


def test_an_app_or_a_folder_of_go_code_is_no_folder_of_tests() -> None:
    files = {"apps/test/all.yaml": CONFIG, "common/a.go": "", "test/e2e/crd/all.yaml": CONFIG}
    there = found(files)
    assert [each.where for each in there.findings] == ["apps/test"]
    assert refusal(there, "tests").where == "test/e2e"


def test_an_overlay_may_be_called_like_tests_and_patches_are_no_app() -> None:
    files = kustomized("web/base", {"e2e": "web/overlays/e2e", "prod": "web/overlays/prod"})
    there = found({**files, "web/base/patches/one.yaml": CONFIG})
    assert [each.name for each in there.findings] == ["web"]
    assert "the overlay e2e of no environment" in there.findings[0].notes[0]
    assert not there.refusals


def test_variants_beside_environments_are_none() -> None:
    names = ("staging", "production", "production-like", "init-db-staging", "release", "with-gpu")
    files = kustomized("web/base", {each: f"web/overlays/{each}" for each in names})
    [web] = found(files).findings
    assert web.environments == ("production", "staging")
    assert web.notes == (
        "the overlays init-db-staging, production-like, release, with-gpu of no environment: left "
        "out (--map init-db-staging=ENV uses one)",
    )
    [web] = found(files, environments=["release"]).findings
    assert web.environments == ("production", "release", "staging")


def test_other_names_are_environments_where_none_is_known_or_the_folder_says_so() -> None:
    regions = ("prod-eu", "prod-us", "staging-eu")
    files = kustomized("web/base", {each: f"web/overlays/{each}" for each in regions})
    assert found(files).findings[0].environments == regions
    for names, parent in ((("eu", "us"), "overlays"), (("eu", "prod"), "environments")):
        files = kustomized("web/base", {each: f"web/{parent}/{each}" for each in names})
        [web] = found(files).findings
        assert (web.environments, web.notes) == (names, ())


def test_names_that_clash_get_all_folders_and_then_a_number() -> None:
    files = {
        **kustomized("multi/kustomize/base", {"prod": "multi/kustomize/overlays/prod"}),
        "multi/helm/Chart.yaml": CHART,
        "multi/manifests/all.yaml": CONFIG,
    }
    names = {each.where: each.name for each in found(files).findings}
    assert names == {
        "multi/helm/Chart.yaml": "multi-helm",
        "multi/kustomize": "multi-kustomize",
        "multi/manifests": "multi-manifests",
    }


def test_names_that_are_too_long_leave_out_the_folders_of_all() -> None:
    long = "registry-of-all-clusters/templates"
    files = {
        f"{cloud}-cloud/{long}/cert-issuers/all.yaml": CONFIG for cloud in ("civo", "azure")
    } | {f"{long}/{'x' * 50}{end}/all.yaml": CONFIG for end in "ab"}
    there = found(files)
    assert not there.refusals
    names = {each.where: each.name for each in there.findings}
    assert names[f"civo-cloud/{long}/cert-issuers"] == "civo-cloud-cert-issuers"
    assert names[f"azure-cloud/{long}/cert-issuers"] == "azure-cloud-cert-issuers"
    assert len({*names.values()}) == 4
    # What still is too long is cut off before the app's own name.
    deep = {f"{cloud}/{'y' * 40}{cloud}/web/all.yaml": CONFIG for cloud in ("one", "two")}
    [first, second] = found(deep).findings
    assert (first.name[:8], second.name[:8]) == ("one-yyyy", "two-yyyy")
    assert first.name.endswith("-web") and second.name.endswith("-web")
    files = {f"{each}/all.yaml": CONFIG for each in ("manifests", "release")}
    titled = detect(place(files), title=f"a-repository-with-a-name-of-{'m' * 12}").findings
    assert [each.name[:11] for each in titled] == ["manifests-a", "release-a-r"]
    assert all(len(each) <= 40 for each in names.values())


def test_a_number_in_a_name_is_told() -> None:
    [first, second] = found({"web/all.yaml": CONFIG, "Web!/all.yaml": CONFIG}).findings
    assert (first.name, first.notes) == ("web", ())
    assert (second.name, second.notes) == ("web-2", ("it is called web-2, since web is Web!",))


def test_names_from_the_repository_are_quoted_for_a_shell() -> None:
    folders = {each: f"web/overlays/{each}" for each in ("prod", "$(id)")}
    [web] = found(kustomized("web/base", folders)).findings
    assert web.notes == (
        "the overlay $(id) of no environment: left out (--map '$(id)'=ENV uses one)",
    )
    assert proposed_flags(["$(id)"], ["prod"], {}, {}) == ["--map '$(id)'=ENV"]


def test_many_with_the_same_reason_are_one_row() -> None:
    same = [
        RefusedApp(f"app-{each}", f"{each}.yaml:1", "a template", "fill it") for each in "abcde"
    ]
    other = RefusedApp("web", "web.yaml:1", "a plugin renders it", "commit what it renders")
    assert refusal_rows([*same[:2], other, *same[2:]]) == [
        ["app-a, app-b, app-c and 2 more", "a.yaml:1 and 4 more", "a template", "fill it"],
        ["web", "web.yaml:1", "a plugin renders it", "commit what it renders"],
    ]
    assert len(refusal_rows(same[:3])) == 3


def test_many_refusals_with_advice_of_their_own_are_one_row_with_the_common_advice() -> None:
    refused = [
        RefusedApp(name, f"{name}.yaml", "old", f"see {name}", for_many="see all")
        for name in "abcd"
    ]
    assert refusal_rows(refused) == [["a, b, c and 1 more", "a.yaml and 3 more", "old", "see all"]]
    assert [each[3] for each in refusal_rows(refused[:3])] == ["see a", "see b", "see c"]
