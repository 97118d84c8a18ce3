"""The reconciler process: watches, controllers and health, from start to a quick, clean end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube
from k8s_ucp.reconciler.clock import Clock, system_clock
from k8s_ucp.reconciler.health import HealthServer
from k8s_ucp.reconciler.local_clusters import LocalClustersController
from k8s_ucp.reconciler.logs import Log
from k8s_ucp.reconciler.registration import RegistrationController
from k8s_ucp.reconciler.settings import LOCAL_CLUSTERS, REGISTRATION, Settings
from k8s_ucp.reconciler.views import Views
from k8s_ucp.reconciler.work_queue import WorkQueue
from k8s_ucp.reconciler.workers import Workers

STOP_SECONDS = 0.7
"""How long work in hand may take to end; what takes longer is repeatable and is left."""

CHECK_SECONDS = 30.0
"""How often the process looks whether all of its parts still live."""


class Controller(Protocol):
    """One loop from what is declared to what is."""

    @property
    def name(self) -> str: ...

    @property
    def workers(self) -> int:
        """Keys worked on side by side."""

    @property
    def queue(self) -> WorkQueue: ...

    def reconcile(self, key: str) -> float | None:
        """See workers.Reconcile."""


class Reconciler:
    """All parts of one process. start() returns at once; so does stop(), almost."""

    def __init__(
        self,
        settings: Settings,
        providers: Mapping[str, ClusterProvider],
        *,
        log: Log | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.settings = settings
        self.log = log or Log()
        self.kube = Kube.from_file(settings.kubeconfig)
        self.views = Views.of(self.kube, settings, self.log)
        self.controllers = self._make(providers, clock)
        self._workers = [
            Workers(each.name, each.queue, each.reconcile, self.log, count=each.workers)
            for each in self.controllers
        ]
        self._health = (
            HealthServer(settings.health_port, self.unhealthy, self.unready)
            if settings.health_port is not None
            else None
        )
        self._working = threading.Event()
        self._stopping = threading.Event()

    def _make(self, providers: Mapping[str, ClusterProvider], clock: Clock) -> list[Controller]:
        made: list[Controller] = []
        if LOCAL_CLUSTERS in self.settings.controllers:
            made.append(
                LocalClustersController(
                    self.kube, self.settings, providers, self.views, self.log, clock
                )
            )
        if REGISTRATION in self.settings.controllers:
            made.append(
                RegistrationController(self.kube, self.settings, self.views, self.log, clock)
            )
        return made

    @property
    def health_port(self) -> int | None:
        return self._health.port if self._health else None

    def start(self) -> None:
        """Begin to watch; work begins once everything was listed, so that nothing looks gone."""
        if self._health:
            self._health.start()
        for each in self.views:
            each.start()
        threading.Thread(target=self._begin, name="begin", daemon=True).start()

    def _begin(self) -> None:
        for each in self.views:
            while not each.synced.wait(60):
                if self._stopping.is_set():
                    return
        if self._stopping.is_set():
            return
        for workers in self._workers:
            workers.start()
        self._working.set()
        self.log.info("working", controllers=sorted(self.settings.controllers))

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End within `seconds`, about."""
        self._stopping.set()
        for each in self.views:
            each.stop()
        for controller in self.controllers:
            controller.queue.stop()
        until = time.monotonic() + seconds
        if self._working.is_set():
            for workers in self._workers:
                if not workers.join(max(0.05, until - time.monotonic())):
                    self.log.warning("work left unfinished; it is taken up at the next start")
        if self._health:
            self._health.stop()
        self.kube.close()
        self.log.info("stopped")

    def unhealthy(self) -> list[str]:
        """What only a restart of this process would heal."""
        dead = [f"the watch of {each.selection} ended" for each in self.views if not each.alive()]
        if self._working.is_set():
            dead += ["a worker ended" for each in self._workers if not each.alive()]
        return dead

    def unready(self) -> list[str]:
        """Why what this process sees may be out of date."""
        wrong = self.unhealthy()
        limit = 3 * self.settings.watch_seconds + 10
        for each in self.views:
            if not each.synced.is_set():
                wrong.append(f"{each.selection} not listed yet")
            elif each.silence() > limit:
                wrong.append(f"no news of {each.selection} for {each.silence():.0f} s")
        return wrong


def run(settings: Settings, providers: Mapping[str, ClusterProvider]) -> None:
    """Work until SIGTERM or SIGINT.

    Raises UcpError when it can't even begin, and when a part of it ended: whoever supervises this
    process starts it again.
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    reconciler = Reconciler(settings, providers)
    reconciler.start()
    wrong: list[str] = []
    while not wrong and not stopping.wait(CHECK_SECONDS):
        wrong = reconciler.unhealthy()
    reconciler.stop()
    if wrong:
        raise UcpError(f"the reconciler can't go on: {', '.join(wrong)}")
