"""What `ucp doctor` examines, built from a snapshot."""

from __future__ import annotations

import dataclasses
from typing import Any

from k8s_ucp.inspect.doctor.examination import Examined
from tests.unit.inspect.snapshots import TOPOLOGY, WELL

NOW = 1_800_000_000.0
BASE = dataclasses.replace(WELL, registrations=[], applications=[], components=[])


def examined(*, notes: Any = None, leases: Any = (), exposed: Any = (), **seen: Any) -> Examined:
    return Examined(
        TOPOLOGY,
        dataclasses.replace(
            BASE, **{"environments": [], "clusters": [], "notes": notes or {}, **seen}
        ),
        NOW,
        leases,
        exposed,
        "/w/core.yaml",
    )
