"""Worker threads, which take keys from a queue and reconcile them."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Conflict
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue

Reconcile = Callable[[str], float | None]
"""Reconciles one key. Returns the seconds until the next time; None: at the next change."""

KEPT = 2
"""Idle threads that stay; others end after PATIENCE seconds without work."""
PATIENCE = 30.0


class Workers:
    """Threads on one queue, as many as needed, up to `most`.

    A thread that takes a key ensures that another one waits for the next key; so threads that hang
    on slow clusters are replaced, up to the limit.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue,
        reconcile: Reconcile,
        log: Log,
        metrics: Metrics,
        *,
        most: int,
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._log = log
        self._metrics = metrics
        self._most = most
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._numbers = 0
        metrics.watch_queue(name, queue)

    def start(self) -> None:
        self._add()

    def alive(self) -> bool:
        with self._lock:
            return bool(self._threads) and all(each.is_alive() for each in self._threads)

    def join(self, seconds: float) -> bool:
        """Wait for the threads to end after the queue was stopped; False if some still run."""
        until = time.monotonic() + seconds
        with self._lock:
            threads = list(self._threads)
        for each in threads:
            each.join(max(0.0, until - time.monotonic()))
        return not any(each.is_alive() for each in threads)

    def _add(self) -> None:
        with self._lock:
            if len(self._threads) >= self._most or self._queue.stopped:
                return
            self._numbers += 1
            name = f"{self._name} {self._numbers}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            # Others see only threads that run: one that is not started can't be joined.
            thread.start()
            self._threads.add(thread)

    def _leave(self) -> bool:
        """Whether this idle thread may end."""
        with self._lock:
            if not self._queue.stopped and len(self._threads) <= KEPT:
                return False
            self._threads.discard(threading.current_thread())
            return True

    def _run(self) -> None:
        while True:
            key = self._queue.take(PATIENCE)
            if key is None:
                if self._leave():
                    return
                continue
            if not self._queue.idle:
                self._add()
            self._work(key)

    def _work(self, key: str) -> None:
        result = "failed"
        try:
            again = self._reconcile(key)
        except Conflict:
            # The object changed since it was read, which is normal; the retry sees the new version.
            result = "conflict"
            self._queue.failed(key)
        except UcpError as error:
            delay = self._queue.failed(key)
            self._log.warning(
                "not finished yet",
                controller=self._name,
                object=key,
                error=error.message,
                retry_seconds=round(delay, 2),
            )
        except Exception:  # noqa: BLE001 (one bad object must not end the thread of all)
            result = "bug"
            self._queue.failed(key)
            self._log.error("bug", controller=self._name, object=key, trace=traceback.format_exc())
        else:
            result = "done"
            took = self._queue.done(key, again)
            if took is not None:
                self._metrics.converged.labels(self._name).observe(took)
        self._metrics.reconciles.labels(self._name, result).inc()
