"""Module paths that live outside the code: in git hooks, Deployments and supervisord's files."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN_FROM_OUTSIDE = (
    "k8s_ucp.gitops.refresh",
    "k8s_ucp.gitops.check_hook",
    "k8s_ucp.gitops.serve",
    "k8s_ucp.components.watcher",
    "k8s_ucp.components.backup_keeper",
    "k8s_ucp.cli.main",
)


@pytest.mark.parametrize("module", RUN_FROM_OUTSIDE)
def test_runs_under_the_name_that_others_know(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", module, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_a_hook_finds_out_whether_its_program_is_there() -> None:
    # Older hooks ask this before they refuse anything.
    subprocess.run([sys.executable, "-P", "-c", "import k8s_ucp.gitops.check_hook"], check=True)
