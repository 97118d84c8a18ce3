"""An informer: lists and watches one kind, and recovers from every kind of interruption.

The official client's informer isn't used: it lists without pages and has no limit on the silence of
a connection, so that a half-open one stalls it for ever. Here the server ends every watch after a
few seconds (bookmarks make resuming cheap), and a connection that is silent for longer is given up.
After an error everything is listed again: a server restored from a backup may have gone back to an
older revision, which a watch from the last resourceVersion would not show.
"""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Expired, Kind, Kube, NotFound, Object, namespaced_name
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.reconciler.runtime.work_queue import BackOff

Change = Callable[[Object | None, Object | None], None]
"""Called with (before, after), None for absent. Runs in the informer's thread: must not block."""

ANSWER_SECONDS = 5.0
"""Timeout of a list."""

LIST_AGAIN = 600.0
"""Seconds between full lists, whatever the watch reports: if the first list was incomplete, nothing
else would reveal it."""

SHORT_SECONDS = 0.2
"""A watch that ends within this time, or can't be resumed, is followed by a pause as long."""

_FORGET = ("managedFields",)


class InformerStore:
    """Objects by `namespace/name`. They are never changed in place, only replaced."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Object | None:
        with self._lock:
            return self._objects.get(key)

    def all(self) -> list[Object]:
        with self._lock:
            return list(self._objects.values())

    def put(self, item: Object) -> Object | None:
        """Store `item`; returns the object that it replaces."""
        with self._lock:
            key = namespaced_name(item)
            before = self._objects.get(key)
            self._objects[key] = item
            return before

    def drop(self, key: str) -> Object | None:
        with self._lock:
            return self._objects.pop(key, None)

    def identifiers(self) -> set[str]:
        with self._lock:
            return set(self._objects)


@dataclass(frozen=True)
class WatchSpec:
    """Which objects are watched. keep: reduces each object to save memory, or drops it (None)."""

    kind: Kind
    namespace: str | None
    labels: str | None = None
    fields: str | None = None
    keep: Callable[[Object], Object | None] = field(default=lambda item: item)

    def __str__(self) -> str:
        which = f" with {self.fields}" if self.fields else ""
        return f"{self.kind.plural}{which}{f' in {self.namespace}' if self.namespace else ''}"


class Informer:
    """A thread that keeps an InformerStore current and calls listeners for every change."""

    def __init__(
        self,
        kube: Kube,
        spec: WatchSpec,
        log: Log,
        *,
        metrics: Metrics,
        seconds: float,
        where: str = "core",
    ) -> None:
        self.spec = spec
        self.name = str(spec) if where == "core" else f"{spec} on {where}"
        self._metrics = metrics
        self.store = InformerStore()
        self.synced = threading.Event()
        self._kube = kube
        self._log = log
        self._seconds = seconds
        self._back_off = BackOff(start=0.2, cap=2.0, jitter=0.5)
        self._listeners: list[Change] = []
        self._stop = threading.Event()
        self._failures = 0
        self._last_response = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"watch {self.name}", daemon=True)

    def listen(self, listener: Change) -> None:
        """Add a listener; only before start."""
        self._listeners.append(listener)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it may wait for the server a few more seconds (it is a daemon)."""
        self._stop.set()

    def alive(self) -> bool:
        return self._thread.is_alive()

    def silence(self) -> float:
        """Seconds since the last response or event of the server."""
        return time.monotonic() - self._last_response

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow(self._list())
            except Expired:
                self._metrics.watch_cuts.labels(self.name, "expired").inc()
                self._stop.wait(SHORT_SECONDS)
            except UcpError as error:
                self._pause(error)
            except Exception as error:  # noqa: BLE001 (one odd object must not end the watch)
                self._log.error("bug", what=self.name, trace=traceback.format_exc())
                self._pause(error)

    def _list(self) -> str:
        items, version = self._list_all()
        known = self.store.identifiers()
        missing = known - {namespaced_name(each) for each in items}
        while missing:
            # An incomplete list must not delete anything: an object counts as deleted if two lists
            # in a row don't contain it.
            items, version = self._list_all()
            still = known - {namespaced_name(each) for each in items}
            for key in missing & still:
                known.discard(key)
                self._notify(self.store.drop(key), None)
            missing = still - missing
        for item in items:
            self._put(item)
        if not self.synced.is_set():
            self.synced.set()
            self._log.info("watching", what=self.name, objects=len(items))
        return version

    def _list_all(self) -> tuple[list[Object], str]:
        found = self._kube.list_with_version(
            self.spec.kind,
            self.spec.namespace,
            labels=self.spec.labels,
            fields=self.spec.fields,
            timeout=ANSWER_SECONDS,
            keep=self._reduced,
        )
        self._metrics.lists.labels(self.name).inc()
        self._answered()
        return found

    def _follow(self, version: str) -> None:
        listed = time.monotonic()
        while not self._stop.is_set() and time.monotonic() - listed < LIST_AGAIN:
            seconds = max(1, round(self._seconds * random.uniform(0.75, 1)))  # noqa: S311
            began = time.monotonic()
            for event, item in self._kube.watch(
                self.spec.kind,
                self.spec.namespace,
                since=version,
                labels=self.spec.labels,
                fields=self.spec.fields,
                seconds=seconds,
                silence=seconds + 2,
            ):
                self._last_response = time.monotonic()
                version = item["metadata"].get("resourceVersion", version)
                if event == "DELETED":
                    self._notify(self.store.drop(namespaced_name(item)), None)
                elif event != "BOOKMARK":
                    self._seen(item)
            self._answered()
            if time.monotonic() - began < SHORT_SECONDS:
                # A proxy may end watches at once: don't reconnect at full speed.
                self._stop.wait(SHORT_SECONDS)

    def _seen(self, item: Object) -> None:
        kept = self._reduced(item)
        if kept is None:
            self._notify(self.store.drop(namespaced_name(item)), None)
        else:
            self._put(kept)

    def _reduced(self, item: Object) -> Object | None:
        """The part of an object that is stored; None to drop it."""
        item.setdefault("apiVersion", self.spec.kind.api_version)
        item.setdefault("kind", self.spec.kind.kind)
        for each in _FORGET:
            item["metadata"].pop(each, None)
        return self.spec.keep(item)

    def _put(self, kept: Object) -> None:
        before = self.store.put(kept)
        if before is None or _version(before) != _version(kept):
            self._notify(before, kept)

    def _notify(self, before: Object | None, after: Object | None) -> None:
        if before is None and after is None:
            return
        for listener in self._listeners:
            listener(before, after)

    def _answered(self) -> None:
        self._last_response = time.monotonic()
        if self._failures:
            self._log.info("watching again", what=self.name)
        self._failures = 0

    def _pause(self, error: Exception) -> None:
        if self._stop.is_set():
            return
        self._failures += 1
        self._metrics.watch_cuts.labels(self.name, type(error).__name__.lower()).inc()
        # The CRD may not exist yet: bootstrap applies it while this starts.
        quiet = isinstance(error, NotFound) and not self.synced.is_set()
        if self._failures == 1 and not quiet:
            self._log.warning("watch interrupted", what=self.name, error=str(error))
        self._stop.wait(self._back_off.delay(self._failures, random.random()))  # noqa: S311


def _version(item: Object) -> str:
    return str(item["metadata"].get("resourceVersion", ""))
