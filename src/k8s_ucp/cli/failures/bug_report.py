"""Bug reports: contain everything needed to fix a bug, and no secrets."""

from __future__ import annotations

import platform
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.errors import UcpError
from k8s_ucp.redaction import without_secrets
from k8s_ucp.workspace import cache_folder, make_private_folder, write_private_file

KEPT = 20
"""Reports to keep; older ones are deleted."""


def write_report(error: BaseException, argv: Sequence[str]) -> Path | None:
    """Write the report (0600) to the cache folder; None if even that fails."""
    # In UTC, so that names sort by time whatever the zone.
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    text = "\n".join(
        (
            f"ucp {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {' '.join(argv[1:])}",
            f"time: {stamp} UTC",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    # A path that isn't valid in the user's encoding contains bytes that can't be encoded.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    try:
        folder = cache_folder() / "bugs"
        make_private_folder(folder)
        path = folder / f"{stamp}.txt"
        write_private_file(path, without_secrets(text))
        _forget_old(folder)
    except (OSError, UcpError):
        sys.stderr.write(without_secrets(text))
        return None
    return path


def _forget_old(folder: Path) -> None:
    """Delete old reports; names sort by time."""
    for path in sorted(folder.glob("*.txt"))[:-KEPT]:
        path.unlink(missing_ok=True)


def summary(error: BaseException) -> str:
    """One line about the error."""
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode("utf-8")
    return " ".join(without_secrets(text).split())[:200]
