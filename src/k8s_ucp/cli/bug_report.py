"""The report of a bug: everything needed to mend it, nothing that must stay secret."""

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


def write_report(error: BaseException, argv: Sequence[str]) -> Path | None:
    """Write the report (0600) into the cache folder; None where even that fails."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    text = "\n".join(
        (
            f"ucp {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {' '.join(argv[1:])}",
            f"arrived: {stamp}",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    folder = cache_folder() / "bugs"
    try:
        make_private_folder(folder)
        path = folder / f"{stamp}.txt"
        write_private_file(path, without_secrets(text))
    except (OSError, UcpError):
        sys.stderr.write(without_secrets(text))
        return None
    return path


def summary(error: BaseException) -> str:
    """One line on the error, fit for a terminal."""
    words = without_secrets(f"{type(error).__name__}: {error}").split()
    return " ".join(words)[:200]
