"""Detects the CI run that promotes: its number, its URL and who started it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from k8s_ucp.gitops.promotion.order import HIGHEST_SEQUENCE


@dataclass(frozen=True)
class Run:
    """A CI run; empty values are unknown."""

    sequence: int | None = None
    source: str = ""
    """What the number counts runs of: numbers of different sources can't be compared."""
    link: str = ""
    person: str = ""
    email: str = ""


@dataclass(frozen=True)
class _System:
    """Variables that a CI system sets. link and source are templates with variables."""

    number: str
    link: str
    source: str
    person: str = ""
    email: str = ""


_SYSTEMS = (
    # Gitea and Forgejo Actions set GitHub's variables too.
    _System(
        "GITHUB_RUN_NUMBER",
        "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
        "{GITHUB_WORKFLOW_REF}",
        "GITHUB_ACTOR",
    ),
    _System(
        "CI_PIPELINE_IID",
        "{CI_PIPELINE_URL}",
        "{CI_PROJECT_PATH}",
        "GITLAB_USER_NAME",
        "GITLAB_USER_EMAIL",
    ),
    _System("CI_PIPELINE_NUMBER", "{CI_PIPELINE_URL}", "{CI_REPO}", "CI_PIPELINE_AUTHOR"),
    _System("DRONE_BUILD_NUMBER", "{DRONE_BUILD_LINK}", "{DRONE_REPO}", "DRONE_BUILD_TRIGGER"),
    _System(
        "BUILDKITE_BUILD_NUMBER",
        "{BUILDKITE_BUILD_URL}",
        "{BUILDKITE_ORGANIZATION_SLUG}/{BUILDKITE_PIPELINE_SLUG}",
        "BUILDKITE_BUILD_CREATOR",
        "BUILDKITE_BUILD_CREATOR_EMAIL",
    ),
    _System(
        "CIRCLE_BUILD_NUM",
        "{CIRCLE_BUILD_URL}",
        "{CIRCLE_PROJECT_USERNAME}/{CIRCLE_PROJECT_REPONAME}",
        "CIRCLE_USERNAME",
    ),
    _System(
        "BITBUCKET_BUILD_NUMBER",
        "{BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
        "{BITBUCKET_REPO_FULL_NAME}",
    ),
    _System(
        "BUILD_BUILDID",
        "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
        "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}",
        "BUILD_REQUESTEDFOR",
        "BUILD_REQUESTEDFOREMAIL",
    ),
    _System("BUILD_NUMBER", "{BUILD_URL}", "{JOB_NAME}", "BUILD_USER", "BUILD_USER_EMAIL"),
)

_LINK = re.compile(r"https?://[\x21-\x7e]{1,1000}")


def find_run(env: Mapping[str, str]) -> Run:
    """The CI run that the environment variables describe; an empty Run outside of CI."""
    for system in _SYSTEMS:
        number = env.get(system.number, "")
        if re.fullmatch(r"[0-9]{1,19}", number) and int(number) <= HIGHEST_SEQUENCE:
            link = _filled(system.link, env)
            return Run(
                sequence=int(number),
                # A workflow's reference ends with the branch, but all branches share one run
                # number.
                source=_line(_filled(system.source, env).split("@")[0]),
                link=link if _LINK.fullmatch(link) and "@" not in link.split("?")[0] else "",
                person=_line(env.get(system.person, "")),
                email=_line(env.get(system.email, "")),
            )
    return Run()


def _filled(template: str, env: Mapping[str, str]) -> str:
    """The template with variables filled in; "" if one of them is missing."""
    names = re.findall(r"\{([A-Z_]+)\}", template)
    if not all(env.get(name) for name in names):
        return ""
    return template.format_map({name: env[name] for name in names})


def _line(text: str) -> str:
    """Printable text on one line, usable in a trailer or as a name."""
    return "".join(each for each in text if each.isprintable()).strip()[:200]
