"""Rewriting the paths in the output of `git fast-export`."""

from __future__ import annotations

from k8s_ucp.git.grafts import move

STREAM = b"""\
feature done
blob
mark :1
data 12
M 100644 :1

reset refs/heads/kept
commit refs/heads/kept
mark :2
author A <a@example.org> 1700000000 +0100
committer A <a@example.org> 1700000000 +0100
data 9
D old.txt
M 100644 :1 web/a.yaml
M 100644 :1 "web/\\303\\274.yaml"
M 160000 0123456789012345678901234567890123456789 web/module
M 100644 :1 other/b.yaml
D web/c.yaml

done
"""


def places(path: str) -> list[str]:
    return [f"{each}/{path}" for each in ("one", "two")] if path.startswith("web/") else []


def test_paths_are_moved_and_contents_unchanged() -> None:
    moved = b"".join(move(STREAM, "refs/x", places)).decode()
    assert "data 12\nM 100644 :1\n" in moved
    assert "data 9\nD old.txt" in moved
    assert 'M 100644 :1 "one/web/a.yaml"\nM 100644 :1 "two/web/a.yaml"\n' in moved
    assert 'M 100644 :1 "one/web/ü.yaml"\n' in moved
    assert 'D "one/web/c.yaml"\n' in moved
    assert "other" not in moved
    assert "module" not in moved
    assert "refs/heads" not in moved
    assert moved.endswith(f"get-mark :2\nreset refs/x\nfrom {'0' * 40}\n\ndone\n")


def test_a_stream_without_commits_is_unchanged() -> None:
    assert b"".join(move(b"feature done\ndone\n", "refs/x", places)) == b"feature done\ndone\n"
