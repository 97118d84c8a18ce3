"""`make start`, the first command that a new user runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A prepared checkout, with a `ucp` whose argument is its exit code."""
    for name in ("pyproject.toml", "requirements/ucp.txt", ".venv/bin/python", ".venv/ready"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    ucp = tmp_path / ".venv/bin/ucp"
    ucp.write_text("#!/bin/sh\nexit $2\n")
    ucp.chmod(0o755)
    shutil.copy(MAKEFILE, tmp_path)
    return tmp_path


@pytest.mark.parametrize("code", [0, 130])
def test_new_user_is_told_how_to_run_the_next_command(checkout: Path, code: int) -> None:
    def started(path: str) -> tuple[bool, str]:
        made = subprocess.run(
            ["make", "start", f"ARGS={code}"],
            cwd=checkout,
            env={"PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return made.returncode == 0, made.stderr

    well, said = started(os.defpath)
    assert well == (code == 0)
    assert ("Error 130" in said) == (code == 130)
    assert "source .venv/bin/activate" in said
    _, said = started(f"{checkout}/.venv/bin:{os.defpath}")
    assert "activate" not in said


def test_new_user_without_a_network_is_told_so(checkout: Path) -> None:
    (checkout / ".venv/ready").unlink()
    python = checkout / ".venv/bin/python"
    python.write_text('#!/bin/sh\ncase "$*" in *install*) exit 1 ;; esac\n')
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "start"],
        cwd=checkout,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode != 0
    assert "check the network and pip's index" in made.stderr
    assert not (checkout / ".venv/ready").exists()
