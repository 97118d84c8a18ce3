"""Options that promote, rollback and history share, and their values."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from k8s_ucp.cli.command import option
from k8s_ucp.cli.topology_selection import app_names
from k8s_ucp.errors import UsageError

REPO_HELP = "URL or path of the app repository. Default: that of the workspace's topology."
BRANCH_HELP = (
    "Branch of the app repository. Default: the topology's; with --repo, its default branch."
)
DRY_RUN_HELP = "Print the commit message and the diff without pushing anything."
ENV_HELP = "Environment to change."
TIMEOUT_HELP = "How long to wait for the repository and to retry the push."

AppArgument = Annotated[
    str, typer.Argument(metavar="APP", help="Name of the app.", autocompletion=app_names)
]
RepoOption = Annotated[str, option("--repo", "URL|PATH", REPO_HELP)]
BranchOption = Annotated[str, option("--branch", "NAME", BRANCH_HELP)]

_UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}


def seconds(option: str, text: str) -> float:
    """Seconds of a duration such as 90s, 10m or 1h30m. Raises UsageError."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{option} {text!r} is not a valid duration", next=f"{option} 10m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
