"""User functions in the core repository: `api/functions/<name>/main.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from k8s_ucp.errors import UsageError
from k8s_ucp.names import DNS_LABEL

FOLDER = "api/functions"
MAIN = "main.py"


def names(paths: Iterable[str], *, reserved: str = "") -> list[str]:
    """Names of the functions among files of the core repository. Raises UsageError.

    reserved: a name that may not be used.
    """
    below = [PurePosixPath(path) for path in paths if path.startswith(f"{FOLDER}/")]
    found = sorted(path.parent.name for path in below if path == _main(path.parent.name))
    for each in found:
        if each == reserved or not DNS_LABEL.fullmatch(each):
            what = "reserved" if each == reserved else "invalid"
            raise UsageError(
                f"{FOLDER}/{each}: {what} name of a function",
                next="rename the folder: lowercase letters, digits and hyphens",
            )
    return found


def _main(name: str) -> PurePosixPath:
    return PurePosixPath(FOLDER, name, MAIN)
