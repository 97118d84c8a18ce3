"""The interface of a controller, and what all controllers of a process share.

A controller registers what it depends on in its constructor (`runtime.informers`,
`runtime.registered_clusters`, its own watches), before any watch starts. It reconciles once all
watches are synced and this process is the leader.
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
    """A reconcile loop for one kind of declared state."""

    name: str
    most: int
    """Upper limit of worker threads; they start and end with the load."""
    queue: WorkQueue
    """Its lanes limit how many keys of one app cluster are processed at once."""

    def watches(self) -> Iterable[Informer]:
        """Its own informers on the core cluster. Those that exist at startup are started for it."""
        return ()

    def reconcile(self, key: str) -> float | None:
        """See workers.Reconcile."""
        raise NotImplementedError

    def take_over(self) -> None:
        """This process becomes the leader, maybe after another one. Must not block."""

    def stop(self) -> None:
        """Stop what it started itself, such as watches on app clusters. Must not block."""


class Runtime:
    """Shared by all controllers of a process; all parts are safe to share between threads."""

    def __init__(
        self,
        kube: Kube,
        settings: Settings,
        providers: Mapping[str, ClusterProvider],
        log: Log,
        clock: Clock,
        backings: Mapping[str, Backing] = MappingProxyType({}),
    ) -> None:
        """kube: the core cluster. backings: run the resources of a simulated cloud."""
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
        spec: WatchSpec,
        *,
        on: Kube | None = None,
        where: str = "core",
        seconds: float | None = None,
    ) -> Informer:
        """Create an informer without starting it.

        on: connection of an app cluster; None: the core cluster. where: its name, for metrics.
        seconds: after which the server ends each watch; None: the default of the settings.
        """
        return Informer(
            on or self.kube,
            spec,
            self.log,
            metrics=self.metrics,
            where=where,
            seconds=seconds or self.settings.watch_seconds,
        )


ControllerFactory = Callable[[Runtime], Controller]
