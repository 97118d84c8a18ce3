"""Finds what is ucp's own but tracked by a git repository around the workspace."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from k8s_ucp.git.environment import git_call
from k8s_ucp.git.objects import SUBMODULE, SYMBOLIC_LINK

SECONDS = 10.0
_STATE = re.compile(r"(?P<folder>\.ucp|gitops/[^/]+/[^/]+\.git)(?:/.*)?", re.I | re.S)
"""State, and bare repositories with their hooks."""
_LINK = re.compile(r"(?P<folder>gitops(?:/[^/]+){0,2})", re.I)
"""A symbolic link at these paths could point to other files of the repository."""


_MODULE = re.compile(r"(?P<folder>gitops(?:/[^/]+)?)", re.I)
"""A submodule at these paths can contain a bare repository of its author."""


def tracked_state(workspace: Path) -> list[str]:
    """Tracked folders of a workspace that determine which programs run, sorted."""
    return chosen(_tracked(workspace, "--stage", "--", ":(icase).ucp", ":(icase)gitops"))


def tracked_files(folder: Path) -> set[str]:
    """Names of the files in a folder that git tracks, whatever link leads to it."""
    listed = _tracked(folder.resolve(), "--", ".").split("\0")
    return {each for each in listed if each and "/" not in each}


def _tracked(folder: Path, *words: str) -> str:
    """The output of `git ls-files -z`, with paths relative to the folder.

    Empty if there is no repository around the folder, or if git fails: the authors of the
    repository's content can't cause either.
    """
    if not any((each / ".git").exists() for each in (folder, *folder.parents)):
        return ""
    # Regardless of the owner: listing a repository's files runs none of its code.
    arguments = ("-c", "safe.directory=*", "ls-files", "-z", *words)
    call = git_call(arguments, folder=folder, credential=None)
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
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")


def chosen(listing: str) -> list[str]:
    """Select from the output of `git ls-files --stage -z`. Pure."""
    found = set()
    for entry in filter(None, listing.split("\0")):
        about, _, path = entry.partition("\t")
        rules = [_STATE]
        if about.startswith(SYMBOLIC_LINK):
            rules.append(_LINK)
        elif about.startswith(SUBMODULE):
            rules.append(_MODULE)
        found |= {match["folder"] for rule in rules if (match := rule.fullmatch(path))}
    return sorted(found)
