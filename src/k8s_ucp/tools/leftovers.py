"""What killed installations left behind: compilers that still run, and big folders."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.errors import CommandFailed


def end_orphans(folder: Path) -> None:
    """End compilers that outlived a killed installer: only those that work in its folder."""
    for each in process.working_in(folder):
        if each.pid != os.getpid():
            process.terminate(each, grace=2)


def delete_later(folder: Path) -> None:
    """Delete a folder of several hundred thousand files by a process of its own, in half a minute.

    Where that is killed, the next installation begins it again.
    """
    if not process.working_in(folder):
        with contextlib.suppress(CommandFailed):  # done before it could be looked at
            process.spawn(
                ["rm", "-rf", "--", str(folder)],
                env=os.environ,
                cwd=folder,
                log=Path(os.devnull),
            )
