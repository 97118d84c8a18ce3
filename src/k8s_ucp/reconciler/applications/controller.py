"""The applications controller: starts what Argo CD doesn't.

That is the sync of a rejected commit, and another look at a new app whose AppProject was late, or
at all apps after a server did not respond.
"""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import APPLICATION, APPLICATION_SET, Object
from k8s_ucp.reconciler.applications import failed_sets
from k8s_ucp.reconciler.applications.rejected_commits import missing_sync, only_rejected
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import APPLICATIONS
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue


class ApplicationsController(Controller):
    """Looks at one Application at a time: of an app, or the one that deploys the sets of all."""

    name = APPLICATIONS
    most = 1

    def __init__(self, runtime: Runtime) -> None:
        self.queue = WorkQueue(BackOff(start=1.0, cap=30.0))
        self._kube = runtime.kube
        self._log = runtime.log
        self._clock = runtime.clock
        self._topology = runtime.settings.topology
        self._rejected = runtime.watch(
            WatchSpec(
                APPLICATION,
                names.ARGOCD_NAMESPACE,
                labels=f"{names.TOPOLOGY}={self._topology}",
                keep=only_rejected,
            )
        )
        self._sets = runtime.watch(
            WatchSpec(
                APPLICATION,
                names.ARGOCD_NAMESPACE,
                fields=f"metadata.name={failed_sets.APPLICATION}",
                keep=failed_sets.only_degraded,
            )
        )
        for each in self.watches():
            each.listen(self._changed)

    def watches(self) -> tuple[Informer, ...]:
        return (self._rejected, self._sets)

    def _changed(self, _: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(after["metadata"]["name"])

    def reconcile(self, key: str) -> float | None:
        if key == failed_sets.APPLICATION:
            return self._refresh_sets()
        application = self._kube.find(APPLICATION, key, names.ARGOCD_NAMESPACE)
        sync = missing_sync(application) if application else None
        if sync is not None:
            self._kube.patch(APPLICATION, key, names.ARGOCD_NAMESPACE, sync)
            self._log.info("sync of a rejected commit started", application=key)
        return None

    def _refresh_sets(self) -> float | None:
        """Seconds until the results of refreshes are to be looked at; None if there was none."""
        pauses = []
        for name in failed_sets.SETS:
            found = self._kube.find(APPLICATION_SET, name, names.ARGOCD_NAMESPACE)
            now = self._clock()
            pause = found and failed_sets.refresh_pause(found, self._topology, now)
            if pause:
                annotations = {"metadata": {"annotations": names.REFRESH_SET}}
                self._kube.patch(APPLICATION_SET, name, names.ARGOCD_NAMESPACE, annotations)
                pauses.append(pause)
        return min(pauses, default=None)
