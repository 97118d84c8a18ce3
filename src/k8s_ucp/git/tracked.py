"""Finds what is ucp's own but tracked by a git repository around the workspace."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from k8s_ucp.git.environment import git_call
from k8s_ucp.git.objects import SUBMODULE, SYMBOLIC_LINK

SECONDS = 10.0
_STATE = re.compile(
    r"(?P<folder>\.ucp|gitops/[^/]+/[^/]+\.git)(?:/.*)?|(?P<bare>gitops(?:/[^/]+){0,2})/HEAD"
    r"|(?P<functions>gitops/[^/]+/core/api)(?:/.*)?",
    re.I | re.S,
)
"""State; bare repositories with their hooks and settings, whatever their names are; and composition
functions, as in a clone of the core repository."""
_LINK = re.compile(r"(?P<folder>gitops(?:/[^/]+){0,2})", re.I)
"""A symbolic link at these paths could point to other files of the repository; a submodule has
those of another one."""
_PLACES = (
    "gitops/*/?*.git",
    "gitops/HEAD",
    "gitops/*/HEAD",
    "gitops/*/*/HEAD",
    "gitops/*/core/api",
)
"""Where such files are on the disk. Other people's `gitops` folders contain none of them."""


def may_have_state(workspace: Path) -> bool:
    """Whether there is anything that determines which programs run. Runs no git."""
    states = workspace / ".ucp"
    return states.is_symlink() or states.exists() or bool(_folders(workspace))


def tracked_state(workspace: Path) -> list[str]:
    """Tracked folders of a workspace that determine which programs run, sorted."""
    listing = _tracked(workspace, "--stage", "--", ":(icase).ucp", ":(icase)gitops")
    # A clone that ucp made is listed as a submodule after `git add --all`, but is none.
    return [
        each
        for each in chosen(listing, _folders(workspace))
        if not (workspace / each / ".git").is_dir()
    ]


def _folders(workspace: Path) -> set[str]:
    found = (each for pattern in _PLACES for each in workspace.glob(pattern))
    return {each.relative_to(workspace).as_posix().casefold() for each in found}


def tracked_files(folder: Path) -> set[str]:
    """Names of the files in a folder that git tracks, whatever link leads to it."""
    listed = _tracked(folder.resolve(), "--", ".").split("\0")
    return {each for each in listed if each and "/" not in each}


def _tracked(folder: Path, *arguments: str) -> str:
    """The output of `git ls-files -z`, with paths relative to the folder.

    Empty if there is no repository around the folder, or if git fails: the authors of the
    repository's content can't cause either.
    """
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if top is None:
        return ""
    # Named, since git would take a folder with HEAD, objects and refs for a repository. Regardless
    # of the owner: listing a repository's files runs none of its code.
    where = (f"--git-dir={top / '.git'}", f"--work-tree={top}", "-c", "safe.directory=*")
    call = git_call((*where, "ls-files", "-z", *arguments), folder=folder, credential=None)
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


def chosen(listing: str, folders: Collection[str] = ()) -> list[str]:
    """Select from the output of `git ls-files --stage -z`. Pure.

    folders: of repositories and functions, in lower case, some of which may be in submodules.
    """
    found = set()
    for entry in filter(None, listing.split("\0")):
        about, _, path = entry.partition("\t")
        inside = f"{path.casefold()}/"
        is_module = about.startswith(SUBMODULE) and any(
            f"{each}/".startswith(inside) for each in folders
        )
        is_link = about.startswith(SYMBOLIC_LINK)
        for rule in (_STATE, _LINK) if is_link or is_module else (_STATE,):
            if match := rule.fullmatch(path):
                found.add(next(filter(None, match.groups())))
    return sorted(found)
