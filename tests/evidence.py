"""Writes the results of a soak or benchmark run to docs/evidence/<name>.md.

Each page states the date, the commit and the kind of machine, so that readers can judge it. It
contains no host names and no paths.
"""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "evidence"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """The kind of machine: cores, memory, architecture, system, Python."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return (
        f"{psutil.cpu_count()} cores, {memory} GiB, {platform.machine()}, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}"
    )


def commit() -> str:
    """The measured commit, marked if the working tree differs from it."""

    def git(*words: str) -> str:
        folder = str(FOLDER.parent.parent)
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "templates")
    return git("rev-parse", "--short=12", "HEAD") + (" with uncommitted changes" if changed else "")


def write(name: str, title: str, sections: Mapping[str, str], *, command: str) -> Path:
    """Write docs/evidence/<name>.md: headings with their text, and the command that produced it."""
    now = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = [
        f"# {title}",
        "",
        f"Made by `{command}` on {now} at commit {commit()}.",
        f"Machine: {machine()}.",
    ]
    body = [line for heading, text in sections.items() for line in ("", f"## {heading}", "", text)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.md"
    path.write_text("\n".join([*head, *body]) + "\n", encoding="utf-8")
    return path
