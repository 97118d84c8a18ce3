"""Which files Argo CD takes by `directory.include` and `directory.exclude`."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.directories import takes_all

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
def test_all_files_are_taken(directory: dict[str, str]) -> None:
    assert takes_all(directory, NAMES)


@pytest.mark.parametrize(
    "directory",
    [
        {"include": "*.yaml"},
        {"include": "all.yaml"},
        {"include": "{all,jobs}.yaml"},
        {"exclude": "jobs/*"},
        {"exclude": "*.[xy]ml"},
        # What can't be told for sure takes nothing, and leaves out everything.
        {"include": "{*.yaml,*"},
        {"include": "*}"},
        {"include": "[*"},
        {"exclude": "[z"},
    ],
)
def test_not_all_files_are_taken(directory: dict[str, str]) -> None:
    assert not takes_all(directory, NAMES)


def test_a_pattern_knows_no_folders() -> None:
    assert takes_all({"include": "*.yml"}, ["jobs/job.yml"])
    assert not takes_all({"exclude": "*.yml"}, ["jobs/job.yml"])
