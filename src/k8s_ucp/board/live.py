"""The board's view of a running topology: watched while a page is open, otherwise idle.

Applications and Events are watched, so changes appear immediately. Everything else is polled every
few seconds with the functions behind `ucp status` and `ucp doctor`, and the app repository is read
again when its tip changes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k8s_ucp.board.snapshot import BoardState, Snapshot, snapshot
from k8s_ucp.board.versions import Overview
from k8s_ucp.components.adoption.adopted_argocd import of_ours
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import crossplane_objects
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.inspect.watch import follow
from k8s_ucp.kube import APPLICATION, EVENT, Kind, Kube, Object
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.topology import Topology

ASK_SECONDS = 5.0
"""Polling interval of everything that isn't watched."""
TIP_SECONDS = 2.0
"""Polling interval of the app repository's tip."""
RESOURCE_SECONDS = 30.0

Versions = Callable[[Overview | None], Overview]
"""Reads the app repository, given the previous overview. Raises UcpError."""


@dataclass(frozen=True)
class LiveSource:
    """A running topology."""

    topology: Topology
    connect: Callable[[], Kube]
    """A new client of the core. Raises UcpError."""
    examine: Callable[[], Examined]
    """Collects the data of `ucp doctor`."""
    versions: Versions
    advice: Callable[[Finding], Finding] = lambda finding: finding
    """Adapts a finding's commands to where `ucp board` was started."""
    may_change: bool = False

    @contextlib.contextmanager
    def open(self, changed: Callable[[], None]) -> Iterator[Callable[[], Snapshot]]:
        following = _Following(self, changed)
        following.start()
        try:
            yield following.read
        finally:
            following.stop()


class _Following:
    """Current data, and the threads that update it."""

    def __init__(self, source: LiveSource, changed: Callable[[], None]) -> None:
        self._source = source
        self._changed = changed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._examined: Examined | None = None
        self._core_lost = False
        self._last_seen: float | None = None
        """Time of the last response of the core."""
        self._look = threading.Event()
        """Set to poll the state early."""
        self._overview: Overview | None = None
        self._problem = ""
        self._resources: Sequence[Object] = ()
        self._applications: Mapping[str, Object] | None = None
        self._events: Mapping[str, Object] = {}

    def start(self) -> None:
        jobs: dict[str, Callable[[], None]] = {
            "applications": self._follow_applications,
            "events": self._follow_events,
            "state": lambda: self._repeat(self._examine, ASK_SECONDS, self._look),
            "versions": lambda: self._repeat(self._read_versions, TIP_SECONDS, self._stop),
            "resources": lambda: self._repeat(self._list_resources, RESOURCE_SECONDS, self._stop),
        }
        for name, job in jobs.items():
            threading.Thread(target=job, name=f"board {name}", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        self._look.set()

    def read(self) -> Snapshot:
        """Snapshot of the current data. Sends no requests."""
        with self._lock:
            examined, applications = self._examined, self._applications
            overview, events = self._overview, list(self._events.values())
            lost, problem, resources = self._core_lost, self._problem, self._resources
            last_seen = self._last_seen
        topology = self._source.topology
        clusters = examined.snapshot if examined else None
        if applications is not None:
            ours = of_ours(list(applications.values()), topology.spec.core.adopt)
            clusters = replace(clusters or ClusterSnapshot(core_ready=not lost), applications=ours)
            examined = replace(examined, snapshot=clusters) if examined else None
        found = findings(examined) if examined else []
        return snapshot(
            BoardState(
                topology,
                clusters,
                core_lost=lost,
                heard=last_seen,
                findings=[self._source.advice(each) for each in found],
                versions=overview.deployed if overview else {},
                versions_problem=problem,
                resources=resources,
                events=events,
                may_change=self._source.may_change,
            )
        )

    def _examine(self) -> None:
        self._look.clear()
        found = self._source.examine()
        with self._lock:
            self._core_lost = not found.snapshot.core_ready
            if not self._core_lost:
                self._last_seen = time.time()
            before = self._examined
            if self._core_lost and before is not None:
                # The last known state is shown as outdated.
                components = found.snapshot.components
                old = replace(before.snapshot, core_ready=False, components=components)
                found = replace(found, snapshot=old)
            self._examined = found

    def _read_versions(self) -> None:
        try:
            found, problem = self._source.versions(self._overview), ""
        except UcpError as error:
            found, problem = self._overview or Overview(), error.message
        with self._lock:
            self._overview, self._problem = found, problem

    def _list_resources(self) -> None:
        kube = self._source.connect()
        try:
            found = crossplane_objects(kube)
        finally:
            kube.close()
        with self._lock:
            self._resources = found

    def _repeat(self, job: Callable[[], None], pause: float, sooner: threading.Event) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(UcpError, OSError):
                job()
                self._changed()
            sooner.wait(pause)

    def _follow_applications(self) -> None:
        def keep(items: Mapping[str, Object]) -> None:
            self._applications = items

        self._follow(APPLICATION, ARGOCD_NAMESPACE, keep)

    def _follow_events(self) -> None:
        def keep(items: Mapping[str, Object]) -> None:
            self._events = items

        self._follow(EVENT, None, keep)

    def _follow(
        self,
        kind: Kind,
        namespace: str | None,
        keep: Callable[[Mapping[str, Object]], None],
    ) -> None:
        """Watch a kind. keep: called under the lock, with all existing objects."""
        items: dict[str, Object] = {}
        cut = False
        for change in follow(self._source.connect, kind, namespace, self._stop):
            if change.what == "LOST":
                if not cut:
                    cut = True
                    self._look.set()
                continue
            if change.what == "LISTED":
                items = {_key(each): each for each in change.items}
            elif change.what == "DELETED":
                items.pop(_key(change.items[0]), None)
            else:
                items[_key(change.items[0])] = change.items[0]
            self._update(keep, items)
            if cut:
                cut = False
                self._look.set()

    def _update(self, keep: Callable[[Any], None], items: Mapping[str, Object]) -> None:
        with self._lock:
            self._last_seen = time.time()
            keep(dict(items))
        self._changed()


def _key(item: Object) -> str:
    about = item["metadata"]
    return f"{about.get('namespace', '')}/{about['name']}"
