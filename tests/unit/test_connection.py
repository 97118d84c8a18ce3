"""The first connections of a process, made by several threads at once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import random, sys, threading, time
from k8s_ucp.kube import Kube

config = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
}
sys.setswitchinterval(1e-6)
failed = []

def connect():
    time.sleep(random.random() * 0.4)
    try:
        Kube(config).close()
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=connect) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
sys.exit(str(failed) if failed else 0)
"""


def test_the_client_is_imported_once_for_all_threads() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
