"""The limits of inotify: if they are too low, programs fail with "too many open files"."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.errors import UcpError

INOTIFY = Path("/proc/sys/fs/inotify")
"""Only Linux has it."""


def check_inotify(who: str, *, watches: int, instances: int, folder: Path) -> None:
    """Check the user's limits. who: what needs so many, such as "ucp needs". Raises UcpError."""
    for name, needed in (("max_user_watches", watches), ("max_user_instances", instances)):
        try:
            allowed = int((folder / name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        if allowed < needed:
            raise UcpError(
                f"fs.inotify.{name} is {allowed}, but {who} {needed}",
                next=f"sudo sysctl fs.inotify.{name}={needed}",
            )
