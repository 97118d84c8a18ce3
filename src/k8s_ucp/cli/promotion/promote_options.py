"""The arguments and options of `ucp promote`.

Each can also be set by a variable, which is safer than quoting in pipelines.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import option
from k8s_ucp.cli.promotion.options import (
    BRANCH_HELP,
    DRY_RUN_HELP,
    ENV_HELP,
    REPO_HELP,
    TIMEOUT_HELP,
)
from k8s_ucp.cli.topology_selection import app_names, environment_names
from k8s_ucp.gitops.promotion.order import HIGHEST_SEQUENCE


def _option(flag: str, metavar: str | None, help: str, **more: Any) -> Any:
    """An option and its variable: UCP_PROMOTE_TAG is --tag, and so on."""
    name = "UCP_PROMOTE_" + flag.removeprefix("--").replace("-", "_").upper()
    return option(flag, metavar, help, envvar=name, show_envvar=False, **more)


AppArgument = Annotated[
    str,
    typer.Argument(
        metavar="[APP]",
        help="Name of the app; required without --batch.",
        envvar="UCP_PROMOTE_APP",
        show_envvar=False,
        autocompletion=app_names,
    ),
]
EnvOption = Annotated[str, _option("--env", "ENV", ENV_HELP, autocompletion=environment_names)]
TagOption = Annotated[str, _option("--tag", "TAG", "Image tag to promote; TAG@sha256:… pins it.")]
DigestOption = Annotated[
    str, _option("--digest", "DIGEST", "Image digest to promote instead of a tag: sha256:…")
]
SourceOption = Annotated[
    str,
    _option("--from", "ENV", "Environment to promote from.", autocompletion=environment_names),
]
ImageOption = Annotated[
    list[str] | None,
    _option("--image", "NAME=TAG", "Tag or digest of one of several images; repeatable."),
]
ChartVersionOption = Annotated[
    list[str] | None,
    _option(
        "--chart-version",
        "[NAME=]V",
        "Version of the app's Helm chart to promote, or of the chart NAME; repeatable.",
    ),
]
BatchOption = Annotated[
    str,
    _option("--batch", "FILE", "YAML file with several promotions for one commit; - reads stdin."),
]
RepoOption = Annotated[str, _option("--repo", "URL|PATH", REPO_HELP)]
BranchOption = Annotated[str, _option("--branch", "NAME", BRANCH_HELP)]
SequenceOption = Annotated[
    int | None,
    _option(
        "--sequence",
        "N",
        "Order of the promotion: a lower number never replaces a higher one. "
        "Default: run number of the CI.",
        min=0,
        max=HIGHEST_SEQUENCE,
    ),
]
SemverOption = Annotated[
    bool,
    _option("--semver", None, "Order promotions by semantic version instead of --sequence."),
]
ExpectOption = Annotated[
    str, _option("--expect", "TAG", "Promote only if the environment currently has this tag.")
]
RequireEnvOption = Annotated[
    str,
    _option(
        "--require-env",
        "ENV",
        "Promote only if this environment has the tag. Default: promotesFrom in environments.yaml.",
    ),
]
RequireHealthyOption = Annotated[
    bool,
    _option(
        "--require-healthy",
        None,
        "Promote only if the app is Synced and Healthy in the required environment.",
    ),
]
SoakOption = Annotated[
    str,
    _option(
        "--soak",
        "DURATION",
        "Require the app to have been healthy this long, such as 10m; waits for it.",
    ),
]
PullRequestOption = Annotated[
    bool,
    _option(
        "--pr",
        None,
        "Open or update a pull request for this app and environment instead of pushing "
        "to the branch.",
    ),
]
MergeWhenGreenOption = Annotated[
    bool,
    _option(
        "--merge-when-green", None, "Merge the pull request automatically once its checks pass."
    ),
]
ForgeOption = Annotated[
    str,
    _option(
        "--forge",
        "KIND",
        "Type of the forge: github, gitlab or gitea. Default: derived from the repository's host.",
    ),
]
ForceOption = Annotated[
    bool,
    _option(
        "--force",
        None,
        "Promote even if a higher sequence or version landed; does not override a hold.",
    ),
]
DryRunOption = Annotated[bool, _option("--dry-run", None, DRY_RUN_HELP)]
TimeoutOption = Annotated[str, _option("--timeout", "DURATION", TIMEOUT_HELP)]
