"""What of ucp's own folders came with a clone: files that a git repository around them has."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from k8s_ucp.git.environment import git_call

SECONDS = 10.0
_STATE = re.compile(r"(?P<folder>\.ucp|gitops/[^/]+/[^/]+\.git)(?:/.*)?", re.I | re.S)
"""State, and bare repositories with their hooks."""
_LINK = re.compile(r"(?P<folder>gitops(?:/[^/]+){0,2})", re.I)
"""A link in their place leads to others of the repository."""
_SYMBOLIC_LINK = "120000"


def tracked_state(workspace: Path) -> list[str]:
    """Folders of a workspace that choose programs to run and are files of a repository, sorted.

    Empty where no repository is around it, and where git can't tell: those who wrote what is in a
    repository have no say in that.
    """
    if not any((each / ".git").exists() for each in (workspace, *workspace.parents)):
        return []
    # Whoever owns it: to list its files runs nothing of it.
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
    """Of what `git ls-files --stage -z` prints. Pure."""
    found = set()
    for entry in filter(None, listing.split("\0")):
        about, _, path = entry.partition("\t")
        rules = (_STATE, _LINK) if about.startswith(_SYMBOLIC_LINK) else (_STATE,)
        found |= {match["folder"] for rule in rules if (match := rule.fullmatch(path))}
    return sorted(found)
