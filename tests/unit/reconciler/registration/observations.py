"""What the registration's rules decide on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from k8s_ucp.reconciler.access.sources import Fate
from k8s_ucp.reconciler.registration.rules import Observation
from tests.unit.reconciler.objects import NOW, auth_info, source


def seen(**changes: Any) -> Observation:
    """A valid source in a known environment, with nothing registered yet."""
    one = changes.pop("source", source())
    return replace(
        Observation(
            fate=Fate.ALIVE,
            source=one,
            auth_info=auth_info(one) if one else None,
            environments=frozenset({"stage", "prod"}),
            holders={},
            existing=None,
            now=NOW,
        ),
        **changes,
    )
