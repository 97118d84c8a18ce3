"""What the build of the reconciler's image tries before there is one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import k8s_ucp
from k8s_ucp.components.pods.reconciler_image import RECIPE


def tried(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The recipe's imports with this Python, modules of `tmp_path` before all others."""
    text = (RECIPE / "Dockerfile").read_text()
    stage = text.split("FROM ${BASE}")[1]
    (command,) = re.findall(r"^RUN PYTHONPATH=/opt/k8s-ucp (python3 .*import .*)$", stage, re.M)
    program, *words = shlex.split(command)
    assert program == "python3"
    path = os.pathsep.join((str(tmp_path), str(Path(k8s_ucp.__file__).parents[1])))
    return subprocess.run(
        [sys.executable, *words],
        env={"PYTHONPATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )


def test_a_base_on_which_all_packages_can_be_imported_is_taken(tmp_path: Path) -> None:
    done = tried(tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["grpc", "cryptography", "google/protobuf"])
def test_a_base_without_a_library_of_theirs_is_refused(module: str, tmp_path: Path) -> None:
    """As the loader says it where libstdc++ is missing."""
    package = tmp_path / module
    package.mkdir(parents=True)
    words = "libstdc++.so.6: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({words!r})\n")
    done = tried(tmp_path)
    assert done.returncode != 0
    assert words in done.stderr
