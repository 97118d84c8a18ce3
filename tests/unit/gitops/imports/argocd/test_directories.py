"""Files that Argo CD selects with `directory.include` and `directory.exclude`."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.argocd.application_sets import _matches
from k8s_ucp.gitops.imports.argocd.directories import takes_all
from k8s_ucp.gitops.imports.findings import NotImportable

NAMES = ("all.yaml", "jobs/job.yml")


@pytest.mark.parametrize(
    "directory",
    [
        {},
        {"include": "*"},
        {"include": "**"},
        {"include": "*.y*ml"},
        {"include": "{*.yaml,*.yml}"},
        {"include": "{*.{yaml,yml},*.json}"},
        {"include": "*.y[a-m]*l", "exclude": "values.yaml"},
        {"exclude": "{config.json,env-usw2/*}"},
        {"exclude": "*.[!y]*"},
    ],
)
def test_patterns_that_select_all_files_are_recognized(directory: dict[str, str]) -> None:
    assert takes_all(directory, NAMES)


@pytest.mark.parametrize(
    "directory",
    [
        {"include": "*.yaml"},
        {"include": "all.yaml"},
        {"include": "{all,jobs}.yaml"},
        {"exclude": "jobs/*"},
        {"exclude": "*.[xy]ml"},
        # An unclear pattern is assumed to include no file, or to exclude every file.
        {"include": "{*.yaml,*"},
        {"include": "*}"},
        {"include": "[*"},
        {"exclude": "[z"},
        {"include": "[z-a].yaml"},
    ],
)
def test_patterns_that_do_not_select_all_files_are_recognized(directory: dict[str, str]) -> None:
    assert not takes_all(directory, NAMES)


def test_a_pattern_matches_across_folders() -> None:
    assert takes_all({"include": "*.yml"}, ["jobs/job.yml"])
    assert not takes_all({"exclude": "*.yml"}, ["jobs/job.yml"])


def test_a_pattern_that_takes_years_selects_no_file() -> None:
    assert not takes_all({"include": "*a" * 20}, ["a" * 200])
    assert not takes_all({"exclude": "*a" * 20}, ["a" * 200])


def test_a_generator_of_folders_that_takes_years_is_refused() -> None:
    with pytest.raises(NotImportable, match="has too many"):
        _matches("apps/*" + "a*" * 20, "apps/" + "a" * 200)
    assert _matches("*/*/*/*/*/overlays/*", "a/b/c/d/e/overlays/prod")
    assert _matches("apps/**/overlays/*-eu*", "apps/a/b/overlays/prod-eu1")


def test_many_alternatives_with_a_star_each_are_not_slow() -> None:
    names = [f"{'folder/' * 10}all.{end}" for end in ("yaml", "yml", "json")]
    assert takes_all({"include": "{*.yaml,*.yml,*.json,*.md,*.txt,*.lock}"}, names)
