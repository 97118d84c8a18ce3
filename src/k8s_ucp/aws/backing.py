"""What really runs behind a resource of the cloud on this machine, such as a control plane.

The cloud itself only keeps the record. A program of this machine is brought up when somebody looks
at the resource, as the cloud would do by itself, and goes with the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class BackedResource:
    """One resource, by what is unique in the account."""

    region: str
    name: str
    parameters: Mapping[str, Any]
    """forProvider of the object that was looked at."""


@dataclass(frozen=True)
class BackingState:
    """What runs. told: in the place of what the cloud's record says; why: it isn't ready."""

    ready: bool
    why: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)


SIMULATED = "simulated"
"""In status.atProvider and the connection Secret of what leads nowhere."""

UNBACKED = BackingState(True, told={SIMULATED: "nothing answers at this endpoint"})
"""Of a resource that would have one, on a machine that can't run it."""


class Backing(Protocol):
    """One sort of programs. Every method is idempotent and raises CloudFailed."""

    def bring_up(self, resource: BackedResource) -> BackingState:
        """Make it, or start it with its data; nothing to do while it runs."""

    def state(self, resource: BackedResource) -> BackingState:
        """Looks only."""

    def exists(self, resource: BackedResource) -> bool:
        """Something of it is left, running or not."""

    def remove(self, resource: BackedResource) -> None:
        """End it and remove its data."""
