"""Which files of the folder `creds/` hold credentials."""

from __future__ import annotations

from pathlib import Path


def credential_files(folder: Path) -> list[Path]:
    """Sorted; README and examples are no secrets."""
    if not folder.is_dir():
        return []
    return sorted(
        each
        for each in folder.iterdir()
        if each.is_file()
        and not each.name.startswith((".", "README"))
        and "example" not in each.name
    )
