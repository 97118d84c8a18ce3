"""The applications controller: starts the sync that Argo CD doesn't, of a rejected commit."""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import APPLICATION, Object
from k8s_ucp.reconciler.applications.rejected_commits import missing_sync, only_rejected
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import APPLICATIONS
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue


class ApplicationsController(Controller):
    """Looks at one Application of this topology at a time."""

    name = APPLICATIONS
    most = 1

    def __init__(self, runtime: Runtime) -> None:
        self.queue = WorkQueue(BackOff(start=1.0, cap=30.0))
        self._kube = runtime.kube
        self._log = runtime.log
        self._rejected = runtime.watch(
            WatchSpec(
                APPLICATION,
                names.ARGOCD_NAMESPACE,
                labels=f"{names.TOPOLOGY}={runtime.settings.topology}",
                keep=only_rejected,
            )
        )
        self._rejected.listen(self._changed)

    def watches(self) -> tuple[Informer, ...]:
        return (self._rejected,)

    def _changed(self, _: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(after["metadata"]["name"])

    def reconcile(self, key: str) -> float | None:
        application = self._kube.find(APPLICATION, key, names.ARGOCD_NAMESPACE)
        sync = missing_sync(application) if application else None
        if sync is not None:
            self._kube.patch(APPLICATION, key, names.ARGOCD_NAMESPACE, sync)
            self._log.info("sync of a rejected commit started", application=key)
        return None
