"""Forked commands behave like the program itself, as far as a test can observe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import forked_commands

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="none is forked elsewhere")


@pytest.fixture
def environment(home: Path) -> Mapping[str, str]:
    return {**os.environ, "NO_COLOR": "1"}


@pytest.mark.parametrize(
    "words",
    [
        ["status", "-o", "json"],
        ["--workspace", "work space", "app", "list"],
        ["start", "--plan", "-o", "json"],
        ["start", "--nonsense"],
        ["history", "--help"],
    ],
    ids=" ".join,
)
def test_fork_prints_what_the_program_prints(
    words: list[str], tmp_path: Path, environment: Mapping[str, str]
) -> None:
    (tmp_path / "work space").mkdir()
    forked(words, environment)
    fork = forked_commands.run(words, env=environment, cwd=tmp_path, timeout=120)
    command = [*forked_commands.PROGRAM, *words]
    itself = forked_commands.start_program(command, environment, tmp_path, 120)
    assert vars(fork) == vars(itself)
    assert itself.stdout or itself.stderr


def test_fork_has_its_own_environment(tmp_path: Path, environment: Mapping[str, str]) -> None:
    """Shown by the cache folder, and by Python's own variables, with which no command is forked."""
    words = ["tools", "list", "-o", "json"]
    empty = {**environment, "UCP_CACHE_DIR": str(tmp_path / "cache")}
    first, second, third = (
        forked_commands.run(words, env=env, cwd=tmp_path, timeout=120).stdout
        for env in (environment, environment, empty)
    )
    assert first == second != third
    forked(words, environment)
    for name in ("PYTHONWARNINGS", "LC_ALL", "TYPER_USE_RICH"):
        others = {**environment, name: f"{environment.get(name, '')}1"}
        assert forked_commands.parent_for(words, others) is None


def test_imports_of_the_project_read_no_variable_that_commands_depend_on(
    environment: Mapping[str, str],
) -> None:
    read = forked(["status"], environment).read
    assert not {"HOME", "PATH", "KUBECONFIG", "XDG_RUNTIME_DIR", "TMPDIR"} & set(read)
    assert not [each for each in read if each.startswith(("UCP_", "GIT_"))]


def test_fork_ends_at_its_deadline(tmp_path: Path, environment: Mapping[str, str]) -> None:
    forked(["status"], environment)
    with pytest.raises(subprocess.TimeoutExpired):
        forked_commands.run(["status"], env=environment, cwd=tmp_path, timeout=0)


def forked(words: list[str], environment: Mapping[str, str]) -> forked_commands.Parent:
    """The process from which these arguments are forked, from their second run on."""
    forked_commands.parent_for(words, environment)
    found = forked_commands.parent_for(words, environment)
    assert found is not None
    return found
