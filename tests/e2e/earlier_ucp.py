"""The source of an earlier ucp."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from k8s_ucp.tools.catalogue import CATALOGUE, Edit

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "Restart Docker for all workers at once in tests, run again what a stalled machine fails"
"""The last commit before the modules moved: hooks, programs and state refer to the old ones."""


def source_of(subject: str, folder: Path) -> Path:
    """Files of the commit with this subject; the current ones in a checkout without history."""

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", "-C", ROOT, *words], check=True, capture_output=True
        ).stdout.strip()

    found = git("log", "--format=%H", "--fixed-strings", f"--grep={subject}").decode().split()
    if not found:
        return ROOT
    archive = folder / "earlier.tar"
    git("archive", "-o", str(archive), found[-1])
    with tarfile.open(archive) as files:
        files.extractall(folder / "earlier", filter="data")
    take_built_programs(folder / "earlier/src/k8s_ucp/tools/catalogue.py")
    return folder / "earlier"


def take_built_programs(catalogue: Path) -> None:
    """Have the earlier version run this version's Argo CD and kwok, which have additional edits.

    Its own builds would take ten minutes, which is more than these tests may wait.
    """
    text = catalogue.read_text("utf-8")
    first, *later = CATALOGUE["argocd"].edits
    known = next(line for line in text.splitlines() if f'Edit("{first.path}"' in line)
    text = text.replace(known, "\n".join([known, *map(_line, later)]))
    kwok = CATALOGUE["kwok"]
    edits = f"module={kwok.module!r}, edits=({''.join(map(_line, kwok.edits))}),"
    text = text.replace('name="kwok",', f'name="kwok", {edits}')
    catalogue.write_text(text, "utf-8")


def _line(edit: Edit) -> str:
    return f"Edit({edit.path!r}, {edit.old!r}, {edit.new!r}),"
