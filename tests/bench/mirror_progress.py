"""Progress and results of the benchmarks of mirrors."""

from __future__ import annotations

import os
import time

from tests.evidence import write

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
"""Smaller for a trial run; evidence is written only with 1."""


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def tell(name: str, title: str, sections: dict[str, str], how: str) -> None:
    """Write the evidence, or print it in a trial run."""
    if SCALE != 1:
        print("\n\n".join(f"## {each}\n{text}" for each, text in sections.items()), flush=True)
        return
    load = ", ".join(f"{each:.0f}" for each in os.getloadavg())
    how += f" Load of the machine when this was written (1, 5, 15 minutes): {load}."
    command = f"make bench ARGS={name.replace('-', '_')}"
    write(name, title, {**sections, "What this is": how}, command=command)
