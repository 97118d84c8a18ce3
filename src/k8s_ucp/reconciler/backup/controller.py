"""The backup controller: backs up changes on the core cluster within some seconds.

It runs on the machine that has the key, also for a core in pods: neither the key nor git
credentials belong in a cluster.
"""

from __future__ import annotations

from k8s_ucp.reconciler.backup.writer import BackupWriter
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.runtime.settings import BACKUP
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue


class BackupController(Controller):
    """Polls: a few small lists are more robust than watches."""

    name = BACKUP
    most = 1

    def __init__(self, runtime: Runtime) -> None:
        self._seconds = runtime.settings.backup_seconds
        self.queue = WorkQueue(BackOff(start=self._seconds, cap=4 * self._seconds))
        self._writer = BackupWriter(runtime.settings, runtime.log)
        self._rested = False

    def take_over(self) -> None:
        self._rested = False
        self.queue.add(self.name)

    def reconcile(self, key: str) -> float:  # noqa: ARG002 (there is one)
        """Back up, but not at the first call, since a start that launches this process is busy."""
        if self._rested:
            self._writer.write()
        self._rested = True
        return self._seconds

    def stop(self) -> None:
        self._writer.close()
