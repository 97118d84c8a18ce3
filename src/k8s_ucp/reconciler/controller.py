"""What every controller is given, and what it gives in return.

A controller registers its interest in its constructor (`runtime.informers`,
`runtime.registered_clusters`, watches of its own), before anything is watched; work begins once
everything was listed and it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from k8s_ucp.aws.backing import Backing
from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.fence.files import Gate
from k8s_ucp.kube import Kube
from k8s_ucp.reconciler.access.authenticators.cloud_access import CloudAccess
from k8s_ucp.reconciler.access.cluster_clients import ClusterClients
from k8s_ucp.reconciler.access.owners import Owners
from k8s_ucp.reconciler.access.registered_clusters import RegisteredClusters
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.events import Events
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue


class Controller:
    """One loop from what is declared to what is."""

    name: str
    most: int
    """Threads at work at once, at most; they come and go with the work."""
    queue: WorkQueue
    """Its lanes bound what is done on one app cluster at once."""

    def watches(self) -> Iterable[Informer]:
        """Those of its own on the core, now. The ones of the beginning are started for it."""
        return ()

    def reconcile(self, key: str) -> float | None:
        """See workers.Reconcile."""
        raise NotImplementedError

    def take_over(self) -> None:
        """It leads from now on, perhaps after somebody else did. Must not block."""

    def stop(self) -> None:
        """End what it started itself, such as watches on app clusters. Must not block."""


class Runtime:
    """Shared by all controllers of a process; every part is safe to share between threads."""

    def __init__(
        self,
        kube: Kube,
        settings: Settings,
        providers: Mapping[str, ClusterProvider],
        log: Log,
        clock: Clock,
        backings: Mapping[str, Backing] = MappingProxyType({}),
    ) -> None:
        """kube: the core cluster. backings: what runs behind resources of a simulated cloud."""
        self.kube, self.settings, self.providers = kube, settings, providers
        self.log, self.clock, self.backings = log, clock, backings
        self.gate = Gate(settings.fence, epoch=settings.epoch)
        self.metrics = Metrics(clock)
        self.events = Events(kube, self.metrics, log, clock)
        self.informers = SharedInformers.of(kube, settings, log, self.metrics)
        self.owners = Owners(kube, self.informers)
        self.clients = ClusterClients(self.informers, self.owners, CloudAccess(kube, clock))
        self.registered_clusters = RegisteredClusters(
            self.informers,
            self.clients,
            self.metrics,
            clock,
            topology=settings.topology,
            lifetime=settings.token_lifetime,
        )

    def watch(
        self,
        selection: WatchSpec,
        *,
        on: Kube | None = None,
        where: str = "core",
        seconds: float | None = None,
    ) -> Informer:
        """A watch, not started. on: an app cluster's connection; where: its name, for metrics.

        seconds: until the server ends it; None for as long as most.
        """
        return Informer(
            on or self.kube,
            selection,
            self.log,
            metrics=self.metrics,
            where=where,
            seconds=seconds or self.settings.watch_seconds,
        )


Maker = Callable[[Runtime], Controller]
