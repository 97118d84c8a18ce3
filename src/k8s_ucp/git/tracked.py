"""Finds ucp's own folders that are tracked by a git repository around the workspace."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from k8s_ucp.git.environment import git_call
from k8s_ucp.git.objects import SYMBOLIC_LINK

SECONDS = 10.0
_STATE = re.compile(r"(?P<folder>\.ucp|gitops/[^/]+/[^/]+\.git)(?:/.*)?", re.I | re.S)
"""State, and bare repositories with their hooks."""
_LINK = re.compile(r"(?P<folder>gitops(?:/[^/]+){0,2})", re.I)
"""A symbolic link at these paths could point to other files of the repository."""


def tracked_state(workspace: Path) -> list[str]:
    """Tracked folders of a workspace that determine which programs run, sorted.

    Empty if there is no repository around the workspace, or if git fails: the authors of the
    repository's content can't cause either.
    """
    if not any((each / ".git").exists() for each in (workspace, *workspace.parents)):
        return []
    # Regardless of the owner: listing a repository's files runs none of its code.
    words = ("-c", "safe.directory=*", "ls-files", "--stage", "-z", "--")
    call = git_call((*words, ":(icase).ucp", ":(icase)gitops"), folder=workspace, credential=None)
    try:
        done = subprocess.run(
            call.argv,
            env={**os.environ, **call.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return chosen(done.stdout.decode("utf-8", "surrogateescape"))


def chosen(listing: str) -> list[str]:
    """Select from the output of `git ls-files --stage -z`. Pure."""
    found = set()
    for entry in filter(None, listing.split("\0")):
        about, _, path = entry.partition("\t")
        rules = (_STATE, _LINK) if about.startswith(SYMBOLIC_LINK) else (_STATE,)
        found |= {match["folder"] for rule in rules if (match := rule.fullmatch(path))}
    return sorted(found)
