"""What a maker of clusters can do: the one protocol behind embedded, kind, GKE and existing.

The contract is held by tests/contracts, which every provider runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

Report = Callable[[str], None]
"""Called with one line about what is going on; never with a secret."""


@dataclass(frozen=True)
class ProviderInfo:
    """What a provider is like, for tables and for the checks of combinations."""

    name: str
    simulated: bool
    """Workloads are simulated: pods become Ready without running."""
    adopts: bool = False
    """Its clusters are other people's: deleting one here lets it go, with all that is on it."""
    access_seconds: float | None = None
    """How long an admin kubeconfig is good for; None where it lasts."""


class Reach(Enum):
    """Where those are who want to reach an API server."""

    MACHINE = "machine"
    """Programs of this machine."""
    PODS = "pods"
    """Pods of the core cluster, when its components run there."""


@dataclass(frozen=True)
class ClusterRequest:
    """A cluster that should exist."""

    name: str
    """`<topology>-core` or `<topology>-<environment>`; RFC 1123 label."""
    version: str | None = None
    """Kubernetes version; None: the provider's pinned one."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Provider-specific settings (region, size, nodes ...)."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """Port of the nodes -> port of this machine's loopback interface that leads to it. A provider
    whose nodes take traffic finds free ones for 80 and 443 where none are named."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that the nodes see, read-only: path in the node -> folder."""


@dataclass(frozen=True)
class ClusterState:
    """What is seen of a cluster now."""

    name: str
    exists: bool
    running: bool
    ready: bool
    message: str
    """The reason when not ready, in words for a person."""
    version: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where traffic for its workloads is taken in on this machine: http, https -> host:port."""


class ClusterProvider(Protocol):
    """Makes, keeps and removes clusters. Every call is idempotent and has a deadline."""

    @property
    def info(self) -> ProviderInfo: ...

    def preflight(self, request: ClusterRequest) -> None:
        """Check everything checkable before the first change. Raises UcpError."""

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        """Bring the cluster up: made if absent, started if stopped, kept if it runs.

        Returns when the admin of `kubeconfig` can work; `state` may need seconds more to be ready.
        Raises DeadlineExceeded or UcpError; a failed first creation leaves nothing behind.
        """

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Stop it and keep its data. Nothing to do when it is absent or stopped."""

    def delete(self, name: str, *, timeout: float = 60) -> None:
        """Remove it and its data. Nothing to do when it is absent."""

    def state(self, name: str) -> ClusterState: ...

    def names(self) -> list[str]:
        """Names of the clusters that exist here, sorted."""

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """An admin kubeconfig with certificates inlined. Raises UcpError if there is none.

        Its one context is called like the cluster; reach: who is to get in with it.
        """
