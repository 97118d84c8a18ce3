"""The reconciler's Prometheus metrics: `/metrics` beside the health endpoints.

Every name begins with `k8s_ucp_`. Values that age (silence, freshness, depth) are computed at each
scrape. Labels hold names of clusters, kinds and controllers, never secrets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from k8s_ucp.reconciler.runtime.clock import Clock, system_clock

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class _Queue(Protocol):
    def __len__(self) -> int: ...

    def oldest(self) -> float: ...


class _Informer(Protocol):
    @property
    def name(self) -> str: ...

    def silence(self) -> float: ...


class Metrics:
    """The metrics of one process, in their own registry. Safe to share between threads."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = {}
        self._watches: list[Callable[[], Iterable[_Informer]]] = []
        self._seen: dict[str, float] = {}
        counter, gauge = self._counter, self._gauge
        self.converged = Histogram(
            "k8s_ucp_convergence_seconds",
            "Time from a change until it was fully applied.",
            ["controller"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.reconciles = counter(
            "k8s_ucp_reconciles", "Reconciliations of objects, by result.", "controller", "result"
        )
        self.watch_cuts = counter(
            "k8s_ucp_watch_cuts", "Watches that ended early.", "watch", "reason"
        )
        self.lists = counter("k8s_ucp_lists", "Full list requests.", "watch")
        self.renewals = counter(
            "k8s_ucp_token_renewals",
            "Tokens requested from app clusters.",
            "cluster",
            "identity",
            "result",
        )
        self.refusals = counter(
            "k8s_ucp_refusals",
            "Reconciliations of sources that failed to register.",
            "source",
            "reason",
        )
        self.reachable = gauge(
            "k8s_ucp_cluster_reachable", "1 if the cluster accepts Argo CD's identity.", "cluster"
        )
        self.registered = gauge(
            "k8s_ucp_cluster_registered", "1 if the cluster is registered with Argo CD.", "cluster"
        )
        self.token_expires = gauge(
            "k8s_ucp_token_expires_seconds",
            "When Argo CD's token for the cluster expires, in seconds since the epoch.",
            "cluster",
        )
        self.leading = gauge("k8s_ucp_leading", "1 if this process is the leader.", "controller")
        self.events = counter("k8s_ucp_events", "Kubernetes Events, by result.", "how")
        self._registry.register(_Ageing(self))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def watch_queue(self, controller: str, queue: _Queue) -> None:
        """Report the depth and age of a queue."""
        with self._lock:
            self._queues[controller] = queue

    def watch_watches(self, watches: Callable[[], Iterable[_Informer]]) -> None:
        """Report the silence of informers; `watches` is called at each scrape."""
        with self._lock:
            self._watches.append(watches)

    def cluster_answered(self, cluster: str) -> None:
        """Canary: the cluster responded correctly; reported as the time since then."""
        with self._lock:
            self._seen[cluster] = self._clock()
        self.reachable.labels(cluster).set(1)

    def cluster_silent(self, cluster: str) -> None:
        """The cluster did not respond, or not correctly."""
        self.reachable.labels(cluster).set(0)

    def forget_cluster(self, cluster: str) -> None:
        """Remove the metrics of a cluster that is no longer registered."""
        with self._lock:
            self._seen.pop(cluster, None)
        for each in (self.reachable, self.registered, self.token_expires):
            each.remove_by_labels({"cluster": cluster})

    def forget_source(self, source: str) -> None:
        """Remove the metrics of a source that was deleted."""
        self.refusals.remove_by_labels({"source": source})

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def value(self, name: str, **labels: str) -> float | None:
        """The current value of one sample; None if it does not exist."""
        return self._registry.get_sample_value(name, labels)

    def ageing(self) -> Iterator[Metric]:
        """Metrics that change with time."""
        with self._lock:
            queues, seen = dict(self._queues), dict(self._seen)
            watches = [each for watched in self._watches for each in watched()]
        depth = _family("queue_depth", "Objects queued or being processed.", "controller")
        oldest = _family(
            "queue_oldest_seconds", "Age of the oldest unprocessed change.", "controller"
        )
        for name, queue in queues.items():
            depth.add_metric([name], len(queue))
            oldest.add_metric([name], queue.oldest())
        silence = _family("watch_silence_seconds", "Time since the server last responded.", "watch")
        for each in watches:
            silence.add_metric([each.name], each.silence())
        fresh = _family(
            "cluster_freshness_seconds",
            "Time since the cluster last responded correctly.",
            "cluster",
        )
        for name, at in seen.items():
            fresh.add_metric([name], max(0.0, self._clock() - at))
        yield from (depth, oldest, silence, fresh)


class _Ageing:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.ageing()

    def describe(self) -> list[Metric]:
        """Empty, so that registering collects nothing."""
        return []


def _family(name: str, text: str, label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"k8s_ucp_{name}", text, labels=[label])
