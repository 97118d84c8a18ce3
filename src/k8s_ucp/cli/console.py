"""The only writer to the terminal: data on stdout, what people read on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


class Console:
    """One command's way to speak. Colours only where stderr is a terminal that wants them."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False, color: bool = True) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.color = color and sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def data(self, text: str) -> None:
        """What a program reads: stdout, always, at once."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def say(self, text: str = "") -> None:
        """What a person reads; silent with -q."""
        if not self.quiet:
            sys.stderr.write(text + "\n")

    def detail(self, text: str) -> None:
        """What a person reads with -v."""
        if self.verbose:
            sys.stderr.write(text + "\n")

    def warn(self, text: str) -> None:
        """What a person should know though the command goes on; said with -q too."""
        sys.stderr.write(f"ucp: {text}\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines with aligned columns, headed by the column names in capitals."""
    lines = [[each.upper() for each in columns], *[[cell or "-" for cell in row] for row in rows]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
