"""The import check in the build of the reconciler's image."""

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
    """Run the recipe's imports with this Python; modules in `tmp_path` take precedence."""
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


def test_a_base_image_with_all_libraries_passes_the_import_check(tmp_path: Path) -> None:
    done = tried(tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["grpc", "cryptography", "google/protobuf"])
def test_a_base_image_without_a_required_library_fails_the_import_check(
    module: str, tmp_path: Path
) -> None:
    """With the dynamic loader's message for a missing libstdc++."""
    package = tmp_path / module
    package.mkdir(parents=True)
    words = "libstdc++.so.6: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({words!r})\n")
    done = tried(tmp_path)
    assert done.returncode != 0
    assert words in done.stderr
