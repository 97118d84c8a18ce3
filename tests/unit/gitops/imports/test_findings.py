"""Environments in names."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.findings import NAMES, in_text


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("integration-staging", "staging"),
        ("preview-controller-prod", "prod"),
        ("prod-test", "prod"),
        ("web-pre-prod", "pre-prod"),
        ("web-test", "test"),
        ("integration", "integration"),
        ("web", None),
    ],
)
def test_a_word_that_is_usual_in_names_of_apps_is_the_environment_only_if_none_other_is(
    name: str, environment: str | None
) -> None:
    assert in_text(name, NAMES) == environment
