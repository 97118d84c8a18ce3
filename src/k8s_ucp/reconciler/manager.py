"""The reconciler process: starts watches, controllers and health endpoints, and stops them fast."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType

from k8s_ucp.aws.backing import Backing
from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.errors import UcpError
from k8s_ucp.reconciler.access.core_client import connect
from k8s_ucp.reconciler.applications.controller import ApplicationsController
from k8s_ucp.reconciler.aws.controller import AwsController
from k8s_ucp.reconciler.backup.controller import BackupController
from k8s_ucp.reconciler.controller import Controller, ControllerFactory, Runtime
from k8s_ucp.reconciler.local_clusters.controller import LocalClustersController
from k8s_ucp.reconciler.mirrors.controller import MirrorsController
from k8s_ucp.reconciler.passwords.controller import PasswordsController
from k8s_ucp.reconciler.registration.controller import RegistrationController
from k8s_ucp.reconciler.runtime.clock import Clock, system_clock
from k8s_ucp.reconciler.runtime.health import HealthServer
from k8s_ucp.reconciler.runtime.informer import Informer
from k8s_ucp.reconciler.runtime.leader import Election, Holder
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import (
    APPLICATIONS,
    BACKUP,
    LOCAL_CLUSTERS,
    MANAGED_RESOURCES,
    MIRRORS,
    PASSWORDS,
    REGISTRATION,
    Settings,
)
from k8s_ucp.reconciler.runtime.workers import Reconcile, Workers

STOP_SECONDS = 0.7
"""How long workers may take to finish at shutdown; the rest is abandoned, since it is
idempotent."""

FENCED_SECONDS = 1.0
"""Delay of a retry while the fence doesn't permit this core to write."""
CHECK_SECONDS, LOOK_SECONDS = 30.0, 1.0
"""Intervals of the checks that all threads are alive, and that the settings are current."""


CONTROLLER_FACTORIES: Mapping[str, ControllerFactory] = {
    LOCAL_CLUSTERS: LocalClustersController,
    REGISTRATION: RegistrationController,
    PASSWORDS: PasswordsController,
    APPLICATIONS: ApplicationsController,
    MIRRORS: MirrorsController,
    MANAGED_RESOURCES: AwsController,
    BACKUP: BackupController,
}
"""All controllers. A new one needs a line here and a name in settings.CONTROLLERS."""


class Manager:
    """All parts of one process. start() returns at once, stop() within STOP_SECONDS or so."""

    def __init__(
        self,
        settings: Settings,
        providers: Mapping[str, ClusterProvider],
        *,
        backings: Mapping[str, Backing] = MappingProxyType({}),
        log: Log | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.settings = settings
        self.log = log or Log()
        self.kube = connect(settings, clock)
        self.runtime = Runtime(self.kube, settings, providers, self.log, clock, backings)
        self.informers = self.runtime.informers
        self.controllers = [
            make(self.runtime)
            for name, make in CONTROLLER_FACTORIES.items()
            if name in settings.controllers and (name != MANAGED_RESOURCES or settings.aws)
        ]
        self._workers = {each.name: self._workers_of(each) for each in self.controllers}
        holder = Holder.here(settings.place or settings.machine)
        self._elections = [self._election_of(each, holder) for each in self.controllers]
        self.runtime.metrics.watch_watches(self.watches)
        self._health = (
            HealthServer(
                settings.health_port,
                self.unhealthy,
                self.unready,
                self.runtime.metrics.page,
                address=settings.health_address,
            )
            if settings.health_port is not None
            else None
        )
        self._beginning: threading.Thread | None = None
        """Waits for the watches, then starts all other threads."""
        self._working = threading.Event()
        self._stopping = threading.Event()
        self._turning = threading.Lock()
        """Held while work begins, so that stop() finds either all threads started or none."""

    def _workers_of(self, controller: Controller) -> Workers:
        controller.queue.pause(True)
        return Workers(
            controller.name,
            controller.queue,
            self._gated(controller),
            self.log,
            self.runtime.metrics,
            most=controller.most,
        )

    def _gated(self, controller: Controller) -> Reconcile:
        """Postpone all keys while another core cluster may be the active one."""

        def reconcile(key: str) -> float | None:
            if not self.runtime.gate.is_open():
                return FENCED_SECONDS
            return controller.reconcile(key)

        return reconcile

    def _election_of(self, controller: Controller, holder: Holder) -> Election:
        leading = self.runtime.metrics.leading.labels(controller.name)
        leading.set(0)

        def turn(leads: bool) -> None:
            leading.set(leads)
            if leads:
                controller.take_over()
            controller.queue.pause(not leads)

        name = self.settings.lease(controller.name)
        return Election(
            self.kube, name, holder, self.log, turn, lease_seconds=self.settings.lease_seconds
        )

    def watches(self) -> list[Informer]:
        """The current informers on the core cluster."""
        return [*self.informers, *(watch for each in self.controllers for watch in each.watches())]

    @property
    def health_port(self) -> int | None:
        return self._health.port if self._health else None

    def start(self) -> None:
        """Start the watches; work begins once all are synced, so that nothing seems deleted."""
        if self._health:
            self._health.start()
        self._first = self.watches()
        for each in self._first:
            each.start()
        self._beginning = threading.Thread(target=self._begin, name="begin", daemon=True)
        self._beginning.start()

    def _begin(self) -> None:
        try:
            self._wait_and_work()
        except Exception:  # noqa: BLE001 (such as no more threads; `unhealthy` reports it)
            self.log.error("work did not begin", trace=traceback.format_exc())

    def _wait_and_work(self) -> None:
        for each in self._first:
            while not each.synced.wait(60):
                if self._stopping.is_set():
                    return
        with self._turning:
            if self._stopping.is_set():
                return
            for workers in self._workers.values():
                workers.start()
            for election in self._elections:
                election.start()
            self._working.set()
        self.log.info("working", controllers=sorted(self.settings.controllers))

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Stop within about `seconds`: no new work, running work ends, the Leases are released."""
        with self._turning:
            self._stopping.set()
        until = time.monotonic() + seconds
        with contextlib.ExitStack() as afterwards:
            # Even if something fails below: a Lease that is renewed for ever would block all
            # successors.
            afterwards.callback(self._let_go, until)
            for controller in self.controllers:
                controller.queue.stop()
            for each in self.watches():
                each.stop()
            for controller in self.controllers:
                controller.stop()
            if self._working.is_set():
                for workers in self._workers.values():
                    if not workers.join(max(0.05, until - time.monotonic())):
                        self.log.warning(
                            "shut down with unfinished work; it resumes at the next start"
                        )
        self.log.info("stopped")

    def _let_go(self, until: float) -> None:
        if self._working.is_set():
            for election in self._elections:
                election.stop(max(0.05, until - time.monotonic()))
        if self._health:
            self._health.stop()
        self.runtime.registered_clusters.close()
        self.kube.close()

    def unhealthy(self) -> list[str]:
        """Problems that only a restart of this process can fix."""
        dead = [f"the watch of {each.name} failed" for each in self.watches() if not each.alive()]
        # Read before `_working`, which the thread sets at its end.
        ended = self._beginning is not None and not self._beginning.is_alive()
        if self._working.is_set():
            dead += [
                f"a worker of {name} failed"
                for name, each in self._workers.items()
                if not each.alive()
            ]
            dead += [f"controller {e.name} has stopped" for e in self._elections if not e.alive()]
        elif ended and not self._stopping.is_set():
            dead.append("work did not begin")
        return dead

    def unready(self) -> list[str]:
        """Why this process may see outdated state. One that waits to become the leader is ready."""
        wrong = self.unhealthy()
        limit = 3 * self.settings.watch_seconds + 10
        silent: dict[str, float] = {}
        for each in self.watches():
            if not each.synced.is_set():
                wrong.append(f"{each.name} not listed yet")
            elif (silence := each.silence()) > limit:
                silent[each.name] = silence
        if silent:
            wrong.append(_silent_watches(silent))
        return wrong


def _silent_watches(silent: Mapping[str, float]) -> str:
    """One line for all of them: usually the API server does not respond to any.

    silent: seconds since the last event, by name.
    """
    longest = max(silent, key=lambda name: silent[name])
    more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    return f"no events from {longest}{more} for {silent[longest]:.0f} s"


def run(
    settings: Settings,
    providers: Mapping[str, ClusterProvider],
    outdated: Callable[[], bool] = lambda: False,
    backings: Mapping[str, Backing] = MappingProxyType({}),
) -> None:
    """Run until SIGTERM or SIGINT, or until the settings are outdated.

    Raises UcpError if it can't start, or if a thread died; the supervisor then restarts the
    process.
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    reconciler = Manager(settings, providers, backings=backings)
    reconciler.start()
    wrong: list[str] = []
    checked = time.monotonic()
    while not wrong and not outdated() and not stopping.wait(LOOK_SECONDS):
        if time.monotonic() - checked >= CHECK_SECONDS:
            wrong, checked = reconciler.unhealthy(), time.monotonic()
    reconciler.stop()
    if wrong:
        raise UcpError(f"the reconciler stopped: {', '.join(wrong)}")
