"""One holder at a time, for threads and processes, even if the lock file is deleted."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.locks import folder_locked, locked, locked_now


def test_held_lock_is_not_acquired(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, "the lock", timeout=1):
        with locked_now(path) as free:
            assert not free
        with pytest.raises(DeadlineExceeded, match="the lock"), locked(path, "the lock", timeout=0):
            pass
    with locked_now(path) as free:
        assert free


def test_locked_folder_is_awaited_only_until_the_deadline(tmp_path: Path) -> None:
    with folder_locked(tmp_path):
        refused = pytest.raises(DeadlineExceeded, match="held by")
        with refused, folder_locked(tmp_path, timeout=0.1):
            pass
    with folder_locked(tmp_path, timeout=0):
        pass


def test_holders_that_delete_the_lock_file_never_overlap(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    inside: list[int] = []
    met = []

    def work() -> None:
        for _ in range(20):
            with locked(path, "the lock", timeout=30):
                inside.append(1)
                met.append(len(inside))
                time.sleep(0.001)
                inside.pop()
                path.unlink()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [1] * 80
