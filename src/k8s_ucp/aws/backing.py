"""Programs behind resources of the simulated cloud, such as control planes.

The simulated cloud itself only stores the resource. A program on this machine is started when the
resource is observed, as a real cloud would do by itself, and is deleted with the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class BackedResource:
    """One resource, by its unique key in the account."""

    region: str
    name: str
    parameters: Mapping[str, Any]
    """forProvider of the observed object."""


@dataclass(frozen=True)
class BackingState:
    """State of the program.

    why: why it is not ready. overrides: fields that replace those of the cloud's record.
    """

    ready: bool
    why: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)


SIMULATED = "simulated"
"""Key in status.atProvider and in the connection Secret of endpoints that lead nowhere."""

UNBACKED = BackingState(True, overrides={SIMULATED: "nothing answers at this endpoint"})
"""For a resource without its program, on a machine that can't run it."""


class Backing(Protocol):
    """One kind of program. Every method is idempotent and raises CloudFailed."""

    def bring_up(self, resource: BackedResource) -> BackingState:
        """Create it, or start it with its data; does nothing while it runs."""

    def state(self, resource: BackedResource) -> BackingState:
        """Its state; changes nothing."""

    def exists(self, resource: BackedResource) -> bool:
        """Whether anything of it exists, running or not."""

    def remove(self, resource: BackedResource) -> None:
        """Stop it and delete its data."""
