"""Build time of all programs into an empty cache, and accuracy of the announced times."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.mirror_progress import say
from tests.evidence import table, write
from tests.unit.tools.estimates import is_right

COMMANDS = (("tools", "install"), ("tools", "install", "helm", "argo-rollouts"))
"""Arguments of `ucp`: what a first start needs, and what some need later."""
_TOLD = re.compile(r"\((.* min left)\)")
_SHOWN = 15
Lines = Sequence[tuple[float, str]]
"""Lines with the time of each in seconds since the start."""


def run(_: int) -> None:
    """Build once, whatever the number of rounds; write docs/evidence/builds.md."""
    with tempfile.TemporaryDirectory(prefix="ucp-bench-", ignore_cleanup_errors=True) as folder:
        runs = {words: _timed(words, Path(folder)) for words in COMMANDS}
    tell(runs, command="make bench ARGS=builds")


def tell(runs: Mapping[tuple[str, ...], tuple[Lines, float]], *, command: str) -> None:
    """Write the page. runs: the lines that each command printed, and its duration in seconds."""
    sections = {f"`ucp {' '.join(words)}`": _section(*found) for words, found in runs.items()}
    sections["What this is"] = (
        "Built from sources, with an empty cache of programs, modules and object files. Each line "
        "of progress that tells a time is compared with when the command ended: whole minutes are "
        "right if what they stand for is within a third of what was left, a range if that third "
        "reaches it, less than three minutes if three were not exceeded. One line in several is "
        "shown."
    )
    write("builds", "How long builds take, and what is told of it", sections, command=command)


def _section(lines: Lines, seconds: float) -> str:
    told = list(judged(lines, seconds))
    right = sum(each[-1] for each in told)
    rows = [
        (f"{when:.0f}", said, f"{left / 60:.1f}", "" if is_so else "wrong")
        for when, said, left, is_so in told
    ]
    wrong = [each for each in rows if each[-1]]
    step = max(1, len(rows) // _SHOWN)
    shown = sorted({*rows[::step], *wrong}, key=lambda row: int(row[0]))
    columns = ("after s", "told", "minutes that were left", "")
    return (
        f"{seconds:.0f} s. How long it still takes was told {len(told)} times, {right} times right "
        f"within a third.\n\n{table(columns, shown)}"
    )


def _timed(words: tuple[str, ...], cache: Path) -> tuple[Lines, float]:
    """Run a command; return its lines with their times, and its duration in seconds."""
    environment = {**os.environ, "UCP_CACHE_DIR": str(cache)}
    ucp = Path(sys.executable).with_name("ucp")
    command = [str(ucp), *words, "--source", "sources"]
    began = time.monotonic()
    lines: list[tuple[float, str]] = []
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            lines.append((time.monotonic() - began, line.rstrip()))
            say(lines[-1][1])
    assert running.returncode == 0, lines[-5:]
    return lines, time.monotonic() - began


def judged(lines: Lines, seconds: float) -> Iterator[tuple[float, str, float, bool]]:
    """For each line with an announced time: when, words, seconds that were left, whether right.

    seconds: duration of the command.
    """
    for when, line in lines:
        if not (found := _TOLD.search(line)):
            continue
        left = seconds - when
        yield when, found[1], left, is_right(found[1], left)
