"""Time for the reconciler, so that tests can inject another clock."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""

system_clock: Clock = time.time
