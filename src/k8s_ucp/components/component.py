"""One component wherever it runs: what waits, `ucp status` and doctor need to know of it.

A placement is a way to fulfil this: processes of this machine (HostComponent; host/placement.py
keeps them running) or workloads of the core cluster (pods/component.py). Which one a topology has
follows from its core's provider. How a component is started stays with its steps: on a host parts
of it begin before there is a cluster, in pods everything is an object of the core repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from k8s_ucp.components.health import Check, Health

Place = Literal["host", "pods"]


class Component(Protocol):
    """Argo CD, Crossplane or the reconciler, as it is placed."""

    @property
    def name(self) -> str: ...

    @property
    def placement(self) -> Place: ...

    def ready(self) -> Health:
        """It does its work, or what it still waits for. Nobody's silence is an error."""


@dataclass(frozen=True)
class HostComponent:
    """A component as processes of this machine. check: its own health."""

    name: str
    check: Check
    placement: Place = "host"

    def ready(self) -> Health:
        return self.check()
