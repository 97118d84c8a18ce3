"""Watches the objects of one kind on one API server until stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kind, Kube, Object

WATCH_SECONDS = 30.0
"""Maximum lifetime of a watch after `stop` was set."""
RETRY_SECONDS = 1.0
_CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


@dataclass(frozen=True)
class WatchChange:
    """A message about objects on an API server."""

    what: str
    """LISTED (all existing objects), ADDED, MODIFIED, DELETED, or LOST (connection lost)."""
    items: Sequence[Object] = ()
    why: str = ""
    """Reason for LOST."""


def follow(
    connect: Callable[[], Kube], kind: Kind, namespace: str | None, stop: threading.Event
) -> Iterator[WatchChange]:
    """Yield changes until stopped; reconnects after the connection is lost."""
    while not stop.is_set():
        kube = None
        try:
            kube = connect()
            found, version = kube.list_with_version(kind, namespace)
            yield WatchChange("LISTED", found)
            for what, item in kube.watch(
                kind, namespace, since=version, seconds=WATCH_SECONDS, silence=WATCH_SECONDS + 5
            ):
                if stop.is_set():
                    return
                if what in _CHANGES:
                    yield WatchChange(what, [item])
        except UcpError as error:
            yield WatchChange("LOST", why=error.message)
            stop.wait(RETRY_SECONDS)
        finally:
            if kube is not None:
                kube.close()
