"""Failures that are reported to the user: what failed, on what, and what to type next.

Everything raised on purpose is a UcpError. Anything else that reaches the command line is a bug and
is reported as one (exit code 3). Messages never contain a secret: the packages that handle secrets
(process/, kube/, git/command.py) remove them before they raise.
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterable, Sequence

NEXT_STEP = "; next: "
"""Separates the problem from the next command in a one-line message."""


LISTED = 20
"""Most names that a refusal of an unknown one lists."""


def some_of(names: Sequence[object], shown: int = 5) -> str:
    """The first few names, and how many more there are, so that a message fits on a screen."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more


def command_line(*words: object) -> str:
    """A command to type in a shell: paths may contain spaces, quotes and apostrophes."""
    return shlex.join(map(str, words))


def advise_space(error: OSError) -> str | None:
    """What to type if a write failed for lack of space; None if it failed for another reason."""
    return {
        errno.ENOSPC: "free disk space (df -h), or inodes (df -i)",
        errno.EDQUOT: "free space in your disk quota",
    }.get(error.errno or 0)


class UcpError(Exception):
    """An expected failure.

    message: what failed and on what, one or more lines, no trailing full stop needed.
    next: the command or edit that helps, or None if the message says it all.
    apps: those of ucp.yaml that it is about, if an import can add the others.
    """

    exit_code = 1
    apps: tuple[str, ...] = ()

    def __init__(self, message: str, *, next: str | None = None, apps: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.next = next
        if apps := tuple(apps):
            self.apps = apps

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.next}" if self.next else self.message

    @property
    def in_line(self) -> str:
        """Problem and next command without a line break between them, as in conditions."""
        return f"{self.message}{NEXT_STEP}{self.next}" if self.next else self.message


class UsageError(UcpError):
    """The command line or an input file is not valid: exit code 2."""

    exit_code = 2


def unknown_name(
    what: str, name: object, known: Sequence[object], *, next: str | None = None
) -> UsageError:
    """The refusal of a typed name. what: such as "environment"; known: those that exist."""
    there = f"available: {some_of(known, LISTED)}" if known else f"there is no {what} yet"
    return UsageError(f"unknown {what} '{name}'; {there}", next=next)


class CommandFailed(UcpError):
    """An external program exited with an error.

    argv never contains a secret, by the rules of process/; output: the end of what it printed.
    """

    def __init__(self, argv: Sequence[str], code: int, output: str) -> None:
        self.argv = tuple(argv)
        self.code = code
        self.output = output
        tail = "\n".join(output.strip().splitlines()[-12:])
        text = f"`{' '.join(argv)}` failed with exit code {code}"
        super().__init__(f"{text}:\n{tail}" if tail else text)


class ProgramMissing(UcpError):
    """A required program is not installed."""


class DeadlineExceeded(UcpError):
    """A wait timed out.

    what: the awaited state; seconds: the timeout; last_state: the last observed state.
    """

    def __init__(
        self, what: str, seconds: float, last_state: str, *, next: str | None = None
    ) -> None:
        self.what = what
        self.seconds = seconds
        self.last_state = last_state
        super().__init__(
            f"{what}: not reached within {round(seconds, 1):g} s;"
            f" last state: {last_state or 'unknown'}",
            next=next,
        )
