"""Module paths used outside the code: in git hooks, Deployments and supervisord's files."""

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
def test_a_module_used_outside_the_code_runs_under_its_path(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", module, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_the_import_with_which_old_hooks_detect_ucp_works() -> None:
    # Hooks of older versions run this import before they refuse anything.
    subprocess.run([sys.executable, "-P", "-c", "import k8s_ucp.gitops.check_hook"], check=True)
