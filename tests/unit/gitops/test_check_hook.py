"""Which apps a push changes, and what the hook rejects before it looks at a file."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from k8s_ucp.gitops import check_hook
from k8s_ucp.gitops.check_hook import changed_apps, ensure_check_hook
from tests.person import git as git_in


def test_changed_apps_are_derived_from_the_changed_paths() -> None:
    assert changed_apps(["apps/web/base/x", "README.md", "apps/a/overlays/b/c"]) == {"web", "a"}
    assert changed_apps(["apps/web/x", "*"]) is None
    assert changed_apps(['"apps/\\303\\244/x"']) is None


@pytest.mark.parametrize(("content", "levels"), [("", 12), ("x" * 1000, 3)])
def test_a_tree_that_grows_when_it_is_checked_out_is_rejected(
    content: str, levels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level names the one below ten times: billions of files, or gigabytes, in a few bytes."""
    monkeypatch.setattr(check_hook, "MOST_FILES", 2_000)
    monkeypatch.setattr(check_hook, "MOST_BYTES", 900_000)
    subprocess.run(["git", "init", "-q", "--bare", "--template=", str(tmp_path)], check=True)

    git = partial(git_in, tmp_path)

    def tree(entry: str, names: str = "0123456789") -> str:
        return git("mktree", stdin="".join(f"{entry}\t{each}\n" for each in names))

    blob = f"100644 blob {git('hash-object', '-w', '--stdin', stdin=content)}"
    small = git("commit-tree", tree(blob, "0"), "-m", "Small")
    bomb = tree(blob) if content else tree(blob, "")
    for _ in range(levels - 1):
        bomb = tree(f"040000 tree {bomb}")
    large = git("commit-tree", bomb, "-p", small, "-m", "Large")
    python = Path(sys.executable)
    ensure_check_hook(tmp_path, "core", python=python, kustomize=python)

    pushed = subprocess.run(
        [tmp_path / "hooks" / "pre-receive"],
        cwd=tmp_path,
        input=f"{small} {large} refs/heads/main\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert pushed.returncode == 1
    assert "more than 2000, or larger than 900000 bytes" in pushed.stderr
