"""The Python packages of the reconciler's image, downloaded with this machine's pip."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.components.pods.image_wheels import fetch_wheels
from k8s_ucp.errors import UcpError


class Engine:
    """Answers as the base image's Python."""

    def run(self, *_: str, **__: float) -> str:
        return "3 11 x86_64"


def test_a_pip_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` looks there first, and the folder may be a clone of others."""
    (tmp_path / "pip.py").write_text("open('ran', 'w')")
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    with suppress(UcpError):  # There is nothing to download.
        fetch_wheels(
            cast(ContainerEngine, Engine()), "base", Path("requirements.txt"), tmp_path / "wheels"
        )
    assert not (tmp_path / "ran").exists()
