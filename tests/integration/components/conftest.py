"""A host placement: private state under a path with spaces, sockets under a short path."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program
from k8s_ucp.workspace import StateFolder


def python_program(name: str, code: str, folder: Path, **env: str) -> Program:
    """A program that runs Python code."""
    return Program(name, (sys.executable, "-c", code), folder, env)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for UNIX sockets, for which pytest's paths are too long."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-t", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def placement(tmp_path: Path, short_folder: Path) -> Iterator[HostPlacement]:
    """A placement in which nothing runs yet; everything is stopped at the end."""
    state = StateFolder(tmp_path / "my work; #1 50%" / ".ucp" / "demo")
    state.make()
    placed = HostPlacement(state, short_folder / "run" / "demo")
    yield placed
    placed.stop_all()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "REDIS_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UCP_TEST_CANARY", f"canary-{os.getpid()}")
