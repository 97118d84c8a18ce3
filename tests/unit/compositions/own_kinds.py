"""The example of docs/kinds.md: a user-defined kind with a user-defined function."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/kinds.md"
MAIN = "api/functions/stores/main.py"


def files() -> dict[str, str]:
    """The page's files: path → text."""
    text = PAGE.read_text("utf-8")
    found = re.findall(r"```(?:yaml|python)\n# (\S+\.(?:yaml|py))\n(.*?)```", text, re.DOTALL)
    return dict(found)


def write(folder: Path) -> dict[str, Path]:
    """Write the files into the folder; returns name → path."""
    places = {}
    for name, text in files().items():
        places[name] = folder / name
        places[name].parent.mkdir(parents=True, exist_ok=True)
        places[name].write_text(text)
    return places


def commit_to(core: Path) -> None:
    """Add the files to a clone of the core repository, as the page describes."""
    found = {name: text for name, text in files().items() if name.startswith("api/")}
    for name, text in found.items():
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        (core / name).write_text(text)
    listed = core / "api/kustomization.yaml"
    with listed.open("a") as file:
        for name in found:
            if name.endswith(".yaml"):
                file.write(f"  - {name.removeprefix('api/')}\n")
