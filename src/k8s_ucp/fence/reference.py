"""The ref `refs/ucp/fence` of a core repository: read, and changed by compare-and-swap only."""

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
from k8s_ucp.git.failures import Rejected
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import NETWORK_SECONDS, RefUpdate, Repository


@dataclass(frozen=True)
class FenceReference:
    """clone: of the core repository; its files and branches stay as they are.

    seconds: for each call of git.
    """

    clone: Repository
    seconds: float = NETWORK_SECONDS

    def commit(self) -> str | None:
        """What the remote's ref points to now. Raises the errors of the door to git."""
        line = self.clone.git("ls-remote", "--refs", "origin", FENCE, timeout=self.seconds).decode()
        return line.partition("\t")[0] or None

    def record(self, commit: str) -> FenceRecord:
        """What a commit of the ref says. Raises UcpError; Rejected where it is another by now."""
        if self.clone.resolve(commit) is None:
            self.clone.git(
                # Who held it before, start by start, is the remote's to keep.
                "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
                "--no-write-fetch-head",  # The one file that git keeps open to others' eyes.
                "origin", f"+{FENCE}:{FENCE}", timeout=self.seconds,
            )  # fmt: skip
            if self.clone.resolve(commit) is None:
                raise Rejected(f"{FENCE} has moved while it was read")
        return parse(self.clone.read(commit, FILE).get(FILE, b""))

    def read(self) -> FenceRecord | None:
        """The record as it is now; None where there is none. Raises UcpError."""
        commit = self.commit()
        return self.record(commit) if commit else None

    def claim(
        self, holder: FenceHolder, clock: Callable[[], float], *, takeover: bool = False
    ) -> tuple[str, FenceRecord]:
        """Have the fence: the commit and its record. Raises FenceHeld, UcpError."""

        def attempt(_: int) -> tuple[str, FenceRecord]:
            commit = self.commit()
            found = self.record(commit) if commit else None
            wanted = claimed(found, holder, clock(), takeover=takeover)
            if commit and wanted == found:
                return commit, wanted
            return self._push(commit, wanted), wanted

        return push_until_accepted(attempt)

    def release(self, id: str, clock: Callable[[], float]) -> bool:
        """Let it go; False where this holder has nothing to let go. Raises UcpError."""

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
