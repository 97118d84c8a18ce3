"""The flags of `ucp app add`, which `ucp app import` fills from what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class AppFlags:
    """The flags of an app; empty: not given."""

    name: str
    path: str | None = None
    repo: str | None = None
    revision: str | None = None
    chart: str | None = None
    version: str | None = None
    auth: str | None = None
    values: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    """Keys that are written to the item unchanged."""
    repository: Path | None = None
    """The folder that the files of its path may be anywhere in; None: not known."""
