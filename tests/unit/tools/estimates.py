"""Whether an estimate of a build's duration was right."""

from __future__ import annotations

import re


def is_right(said: str, really: float) -> bool:
    """Whether the estimate is within a third; of a range, any value in it."""
    minutes = [60 * int(each) for each in re.findall(r"\d+", said)]
    if said.startswith("less"):
        return really < minutes[0]
    # Estimates are in whole minutes.
    return minutes[0] - 30 <= really * 4 / 3 and minutes[-1] + 30 >= really * 2 / 3
