"""Options that say where the app repository is."""

from __future__ import annotations

from typing import Annotated

import typer

REPO_HELP = "URL or path of the app repository (default: that of the workspace's topology)."
BRANCH_HELP = "Branch of the app repository (default: its default branch)."

RepoOption = Annotated[str, typer.Option("--repo", metavar="URL|PATH", help=REPO_HELP)]
BranchOption = Annotated[str, typer.Option("--branch", metavar="NAME", help=BRANCH_HELP)]
