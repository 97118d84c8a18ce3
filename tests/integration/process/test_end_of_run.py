"""Processes that tests started end with their run, however it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from k8s_ucp.process import identify, is_running
from tests.control_planes import eventually

RUN = """
import subprocess, sys, time
from pathlib import Path
from tests.end_of_run import ends_with_this_run
folder = Path(sys.argv[1])
ends_with_this_run(folder)
left = subprocess.Popen(["sleep", "300"], cwd=folder, start_new_session=True)
print(left.pid, flush=True)
time.sleep(300)
"""


def test_killed_run_leaves_no_process_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, tmp_path], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout
        left = identify(int(run.stdout.readline()))
        assert left
        assert is_running(left)
        run.kill()
    eventually(lambda: not is_running(left))
