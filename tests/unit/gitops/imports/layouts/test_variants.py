"""Overlays that are variants and no environments."""

from __future__ import annotations

from tests.unit.gitops.imports.repository_files import CONFIG, found, kustomized


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


def test_folders_beside_a_base_are_environments_if_all_are_named_after_one() -> None:
    for names, environments in (
        (("integration-dev", "integration-staging"), ["integration-dev", "integration-staging"]),
        (("eu-prod", "us-prod"), ["eu-prod", "us-prod"]),
        (("dev-tools", "web"), []),
        (("prod", "prod-canary"), ["prod"]),
    ):
        overlays = {each: f"shop/{each}" for each in names}
        there = found(kustomized("shop/base", overlays)).findings
        assert sorted(each for one in there for each in one.environments) == environments


def test_a_folder_that_is_mapped_leaves_those_beside_it_environments() -> None:
    names = ["dev-test", "ocp-prod", "prd-5-eu"]
    files = kustomized("web/base", {each: f"web/{each}" for each in names})
    [web] = found(files, environments=["stage", "prod", "ocp-prod"]).findings
    assert web.environments == tuple(names)


def test_names_from_the_repository_are_quoted_for_a_shell() -> None:
    folders = {each: f"web/overlays/{each}" for each in ("prod", "$(id)")}
    [web] = found(kustomized("web/base", folders)).findings
    assert web.notes == (
        "the overlay $(id) of no environment: left out (--map '$(id)'=ENV uses one)",
    )
