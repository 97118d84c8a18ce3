"""The journal of a topology: the last run of a plan, step by step, and the lock that guards it.

The journal decides nothing, since steps look at the world themselves; it tells people and `ucp
status` how far the last run came, also one that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from k8s_ucp import locks
from k8s_ucp.engine.pipeline import StepEvent, StepState
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file


@dataclass(frozen=True)
class RunRecord:
    """What the journal tells of the last run."""

    plan: str
    outcome: str
    """running (killed, where nobody holds the lock), done, failed or interrupted."""
    began: str
    steps: Sequence[dict[str, Any]]

    @property
    def unfinished(self) -> list[str]:
        """Titles of the steps that had begun and did not end well."""
        bad = (StepState.RUNNING, StepState.FAILED, StepState.CANCELLED)
        return [str(each["title"]) for each in self.steps if each["state"] in bad]


class Journal:
    """Writes one run down as it goes. Each change replaces the whole file, so it is never torn."""

    def __init__(self, path: Path, plan: str) -> None:
        self._path = path
        self._content: dict[str, Any] = {
            "plan": plan,
            "outcome": "running",
            "began": _now(),
            "pid": os.getpid(),
            "steps": [],
        }

    def note(self, event: StepEvent) -> None:
        """Keep a change of state; reports on the way are not worth a write."""
        states = [each.state for each in event.steps]
        if states != [each["state"] for each in self._content["steps"]]:
            self._content["steps"] = [asdict(each) for each in event.steps]
            self._write()

    def end(self, outcome: str) -> None:
        """outcome: done, failed or interrupted."""
        self._content.update(outcome=outcome, ended=_now())
        self._write()

    def _write(self) -> None:
        # On a full disk the step that needs the room says so, better than this file could.
        with contextlib.suppress(OSError):
            write_private_file(self._path, json.dumps(self._content, indent=1) + "\n")


def read(path: Path) -> RunRecord | None:
    """The last run; None where there was none, or nothing that can be read."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return RunRecord(content["plan"], content["outcome"], content["began"], content["steps"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def held(lock: Path, topology: str, command: str) -> Iterator[None]:
    """Hold the lock of a topology: one command changes it at a time; the kernel frees the lock.

    command: what is typed, for the message of the next one. Raises UcpError, at once, naming PID
    and command of the holder.
    """
    with lock.open("a+", encoding="utf-8") as stream:
        if not locks.take(stream.fileno()):
            stream.seek(0)
            pid, _, holder = stream.read().strip().partition(" ")
            raise UcpError(
                f"another command is running on the topology {topology}: "
                f"`{holder or 'ucp'}` (PID {pid or 'unknown'})",
                next="wait for it to finish, or interrupt it with Ctrl-C",
            )
        stream.truncate(0)
        stream.write(f"{os.getpid()} {command}\n")
        stream.flush()
        os.fchmod(stream.fileno(), 0o600)
        yield


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
