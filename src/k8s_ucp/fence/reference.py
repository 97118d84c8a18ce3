"""The ref `refs/ucp/fence` of a core repository: reads, and changes by compare-and-swap only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.fence.record import (
    FENCE,
    FILE,
    FenceHolder,
    FenceRecord,
    claimed,
    dump,
    parse,
    released,
)
from k8s_ucp.git.command import NETWORK_SECONDS
from k8s_ucp.git.failures import Rejected
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import RefUpdate, Repository


@dataclass(frozen=True)
class FenceReference:
    """clone: of the core repository; its files and branches are not touched.

    seconds: timeout of each git command.
    """

    clone: Repository
    seconds: float = NETWORK_SECONDS

    def commit(self) -> str | None:
        """The commit of the remote's ref; None if there is none. Raises the errors of git/."""
        # Git also lists branches that end with this name.
        return self.clone.remote_refs(only=FENCE, timeout=self.seconds).get(FENCE)

    def record(self, commit: str) -> FenceRecord:
        """The record of a commit. Raises UcpError; Rejected if the ref has moved meanwhile."""
        if self.clone.resolve(commit) is None:
            self.clone.git(
                # Only the current record; the remote keeps the history.
                "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
                "--no-write-fetch-head",  # git would make FETCH_HEAD readable for other users.
                "origin", f"+{FENCE}:{FENCE}", timeout=self.seconds,
            )  # fmt: skip
            if self.clone.resolve(commit) is None:
                raise Rejected(f"{FENCE} changed while it was read")
        return parse(self.clone.read(commit, FILE).get(FILE, b""))

    def read(self) -> FenceRecord | None:
        """The current record; None if there is none. Raises UcpError."""
        commit = self.commit()
        return self.record(commit) if commit else None

    def claim(
        self, holder: FenceHolder, clock: Callable[[], float], *, takeover: bool = False
    ) -> tuple[str, FenceRecord]:
        """Claim the fence; returns commit and record. Raises FenceHeld, UcpError."""

        def attempt(_: int) -> tuple[str, FenceRecord]:
            commit = self.commit()
            found = self.record(commit) if commit else None
            wanted = claimed(found, holder, clock(), takeover=takeover)
            if commit and wanted == found:
                return commit, wanted
            return self._push(commit, wanted), wanted

        return push_until_accepted(attempt)

    def release(self, id: str, clock: Callable[[], float]) -> bool:
        """Release the fence; False if `id` doesn't hold it. Raises UcpError."""

        def attempt(_: int) -> bool:
            commit = self.commit()
            wanted = released(self.record(commit) if commit else None, id, clock())
            if wanted is None:
                return False
            self._push(commit, wanted)
            return True

        return push_until_accepted(attempt)

    def _push(self, old: str | None, record: FenceRecord) -> str:
        message = f"Fence of the topology: {record}\n"
        commit = self.clone.write_commit(message, {FILE: dump(record)}, parent=old)
        self.clone.push([RefUpdate(FENCE, commit, expect=old or "")], timeout=self.seconds)
        return commit
