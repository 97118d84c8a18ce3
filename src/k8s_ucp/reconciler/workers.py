"""Threads that take keys from a queue and bring what they name to where it should be."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Conflict
from k8s_ucp.reconciler.logs import Log
from k8s_ucp.reconciler.work_queue import WorkQueue

Reconcile = Callable[[str], float | None]
"""Brings one key up to date. Answers when to look again (seconds), None for at the next change."""


class Workers:
    """A fixed number of threads on one queue: so many keys are worked on side by side."""

    def __init__(
        self, name: str, queue: WorkQueue, reconcile: Reconcile, log: Log, *, count: int
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._log = log
        self._threads = [
            threading.Thread(target=self._run, name=f"{name} {number}", daemon=True)
            for number in range(count)
        ]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def alive(self) -> bool:
        return all(each.is_alive() for each in self._threads)

    def join(self, seconds: float) -> bool:
        """Wait for the threads to end after the queue was stopped; False if some still work."""
        for each in self._threads:
            each.join(seconds / len(self._threads))
        return not any(each.is_alive() for each in self._threads)

    def _run(self) -> None:
        while (key := self._queue.take()) is not None:
            try:
                again = self._reconcile(key)
            except Conflict:
                # It changed since it was read: normal, the next look sees the newer one.
                self._queue.failed(key)
            except UcpError as error:
                delay = self._queue.failed(key)
                self._log.warning(
                    "not done yet",
                    controller=self._name,
                    object=key,
                    error=error.message,
                    retry_seconds=round(delay, 2),
                )
            except Exception:  # noqa: BLE001 (one bad object must not end the thread of all)
                self._queue.failed(key)
                self._log.error(
                    "bug", controller=self._name, object=key, trace=traceback.format_exc()
                )
            else:
                self._queue.done(key, again)
