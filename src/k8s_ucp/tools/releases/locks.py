"""The expected hash of each file of a release: committed, or recorded on first use.

`releases.lock.json` beside this module is shipped: URL -> sha256. Other hashes are taken from the
publisher's checksums on first use and then stored in the user's cache folder, which detects later
changes of a published file and its checksum (decision 8).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_ucp import locks
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import write_private_file

COMMITTED = Path(__file__).with_name("releases.lock.json")
USERS = "releases.lock.json"
"""File in the cache folder."""


class ReleaseLocks:
    """The locked hashes for one user."""

    def __init__(self, cache: Path, committed: Path = COMMITTED) -> None:
        self._path = cache / USERS
        self._committed: Mapping[str, str] = json.loads(committed.read_text("utf-8"))

    def get(self, url: str) -> tuple[str, str] | None:
        """(sha256, source for messages); None if this file was never used."""
        if url in self._committed:
            return self._committed[url], "locked with this version of k8s-ucp"
        known = self._read().get(url)
        if known is None:
            return None
        return str(known["sha256"]), f"locked on this machine on {known['on']} ({self._path})"

    def learn(self, url: str, sha256: str, told_by: str) -> None:
        """Store the hash of a downloaded file that matches its publisher's checksum.

        told_by: URL of the publisher's checksums.
        """
        with self._path.with_suffix(".lock").open("a") as lock:
            # Other processes hold the lock only while they write this small file.
            locks.wait(lock.fileno())
            known = self._read()
            on = time.strftime("%Y-%m-%d", time.gmtime())
            known[url] = {"sha256": sha256, "told_by": told_by, "on": on}
            text = json.dumps(known, indent=1, sort_keys=True) + "\n"
            write_private_file(self._path, text)

    def _read(self) -> dict[str, Any]:
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UcpError(f"failed to read {self._path}: {error.strerror}") from error
        try:
            known = json.loads(text)
            assert all(each["sha256"] and each["on"] for each in known.values())
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
            # Ignoring the file would mean trusting the publishers again.
            raise UcpError(
                f"{self._path}, the checksums of installed releases, is corrupt",
                next=(
                    "restore it from a backup, or delete it to trust the publishers again: "
                    + command_line("rm", self._path)
                ),
            ) from error
        return dict(known)
