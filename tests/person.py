"""git as a person uses it, in a folder of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path

_ME = ("-c", "user.name=Me", "-c", "user.email=me@example.org")


def git(folder: Path, *words: str, stdin: str | None = None) -> str:
    """Run git in the folder, as an author with a name; return its output."""
    done = subprocess.run(
        ["git", "-C", str(folder), *_ME, *words], input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, f"git {words}: {done.stderr}"
    return done.stdout.strip()


def commit_all(folder: Path, message: str = "Mine") -> str:
    """Commit everything in the folder, which becomes a repository; return the commit id."""
    git(folder, "init", "--quiet", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
