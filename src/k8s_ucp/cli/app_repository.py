"""Options that say where the app repository is."""

from __future__ import annotations

from typing import Annotated

import typer

REPO_HELP = "The app repository (default: the one of the workspace's topology)."
BRANCH_HELP = "Its branch (default: its own default)."

RepoOption = Annotated[str, typer.Option("--repo", metavar="URL|PATH", help=REPO_HELP)]
BranchOption = Annotated[str, typer.Option("--branch", metavar="NAME", help=BRANCH_HELP)]
