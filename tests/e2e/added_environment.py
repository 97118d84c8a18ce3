"""The environment eu, added to both repositories by hand."""

from __future__ import annotations

import re
from pathlib import Path


def add_eu_to_core(clone: Path) -> None:
    """Edit the core repository as a person does: the overlay, and its lines in the lists."""
    _copy_overlay(clone / "clusters/overlays")
    for file in (clone / "clusters").rglob("*.yaml"):
        if "overlays/stage" not in file.as_posix() and "overlays/eu" not in file.as_posix():
            file.write_text(_with_sibling_lines(file.read_text()))


def add_eu_to_apps(clone: Path) -> None:
    """Edit the app repository as a person does: its name in the list, the overlay of echo."""
    names = clone / "environments.yaml"
    names.write_text(names.read_text().rstrip("\n") + "\n  - {name: eu, promotesFrom: stage}\n")
    _copy_overlay(clone / "apps/echo/overlays")


def _copy_overlay(folder: Path) -> None:
    (folder / "eu").mkdir()
    for file in (folder / "stage").iterdir():
        (folder / "eu" / file.name).write_text(file.read_text().replace("stage", "eu"))


def _with_sibling_lines(text: str) -> str:
    """Add a line for eu after each line that names stage."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if re.search(r"\bstage\b", line) and not line.lstrip().startswith("#"):
            lines.append(re.sub(r"\bstage\b", "eu", line))
    return "\n".join(lines) + "\n"
