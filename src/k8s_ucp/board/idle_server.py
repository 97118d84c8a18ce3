"""The idle board: a Python process with nothing loaded. Run by path, see idle.py.

Arguments: the descriptors of the listener and of the board's kept sessions, then the command of the
board.
"""

from __future__ import annotations

import os
import select
import sys


def main() -> int:
    """Wait for a connection; the board that this process then becomes accepts it."""
    listener, kept, *command = sys.argv[1:]
    try:
        select.select([int(listener)], [], [])
        os.environ["UCP_BOARD_WAKES"] = f"{listener},{kept}"
        os.execv(command[0], command)  # noqa: S606 (the command that it was before)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        sys.stderr.write(f"ucp: failed to wake the board: {error}\n  next: ucp board\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
