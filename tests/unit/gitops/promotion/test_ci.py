"""Facts about a run, read from the environment variables of CI systems."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.promotion.ci import Run, find_run

GITHUB = {
    "GITHUB_RUN_NUMBER": "42",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "octo/shop",
    "GITHUB_RUN_ID": "900",
    "GITHUB_WORKFLOW_REF": "octo/shop/.github/workflows/build.yml@refs/heads/main",
    "GITHUB_ACTOR": "mona",
}
GITLAB = {
    "CI_PIPELINE_IID": "7",
    "CI_PIPELINE_URL": "https://gitlab.com/octo/shop/-/pipelines/1",
    "CI_PROJECT_PATH": "octo/shop",
    "GITLAB_USER_NAME": "Mona Lisa",
    "GITLAB_USER_EMAIL": "mona@example.org",
}


def test_a_run_outside_of_ci_is_empty() -> None:
    assert find_run({"HOME": "/root", "CI": "true"}) == Run()


def test_a_github_actions_run_is_recognized() -> None:
    assert find_run(GITHUB) == Run(
        42,
        "octo/shop/.github/workflows/build.yml",
        "https://github.com/octo/shop/actions/runs/900",
        "mona",
    )


def test_a_gitlab_pipeline_is_recognized() -> None:
    assert find_run(GITLAB) == Run(
        7,
        "octo/shop",
        "https://gitlab.com/octo/shop/-/pipelines/1",
        "Mona Lisa",
        "mona@example.org",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CI_PIPELINE_NUMBER", "3"),
        ("DRONE_BUILD_NUMBER", "3"),
        ("BUILDKITE_BUILD_NUMBER", "3"),
        ("CIRCLE_BUILD_NUM", "3"),
        ("BITBUCKET_BUILD_NUMBER", "3"),
        ("BUILD_BUILDID", "3"),
        ("BUILD_NUMBER", "3"),
        ("GITHUB_RUN_NUMBER", "3"),
    ],
)
def test_a_build_number_is_used_as_the_sequence(name: str, value: str) -> None:
    assert find_run({name: value}) == Run(sequence=3)


@pytest.mark.parametrize("number", ["", "x", "-1", "1.2", "1_0", "9" * 30, "٣", "1\n"])
def test_invalid_build_numbers_are_ignored(number: str) -> None:
    assert find_run({"GITHUB_RUN_NUMBER": number}) == Run()


@pytest.mark.parametrize(
    "link",
    [
        "javascript:1",
        "https://x\nUcp-App: y",
        "https://user:secret@host/x",
        "https://x y",
        "file:///",
    ],
)
def test_unsafe_links_are_left_out(link: str) -> None:
    assert find_run({**GITLAB, "CI_PIPELINE_URL": link}).link == ""


def test_control_characters_are_removed_from_names() -> None:
    run = find_run({**GITLAB, "GITLAB_USER_NAME": "a\nUcp-App: x", "CI_PROJECT_PATH": "a\x1bb"})

    assert (run.person, run.source) == ("aUcp-App: x", "ab")
