"""Makes Argo CD refresh what it could not compare or generate.

Otherwise it waits for its next poll if a repository did not respond once, and for three minutes if
an ApplicationSet failed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from k8s_ucp.components.adoption.adopted_argocd import of_ours
from k8s_ucp.gitops.refresh import EVERYTHING, is_touched
from k8s_ucp.kube import APPLICATION, APPLICATION_SET, Kind, Kube, NotFound, Object
from k8s_ucp.names import ARGOCD_NAMESPACE, REFRESH, REFRESH_SET
from k8s_ucp.reconciler.runtime.conditions import is_true
from k8s_ucp.timestamps import parse_stamp

ASK_AGAIN = 2.0
"""Seconds."""


@dataclass
class RefreshRequests:
    """Requests refreshes during a wait, at a limited rate per object."""

    kube: Kube
    adopt: Sequence[str] = ()
    """Adopted components: Applications of others in a shared Argo CD are not touched."""
    _asked: dict[str, float] = field(default_factory=dict)
    """Time of the last request by Application."""
    _sets_asked: float = -math.inf
    """Time of the last look at the ApplicationSets, each of which takes the API server 2 ms."""

    def request_refresh(
        self, items: Sequence[Object], *, since: float, behind: Collection[str] = ()
    ) -> None:
        """items: all Applications. since, behind: see `unanswered`. Raises KubeError."""
        now = time.monotonic()
        for name in unanswered(items, self._asked, since=since, now=now, behind=behind):
            self._asked[name] = now
            self._annotate(APPLICATION, name, REFRESH)
        if now - self._sets_asked < ASK_AGAIN:
            return
        self._sets_asked = now
        sets = of_ours(self.kube.list_all(APPLICATION_SET, ARGOCD_NAMESPACE), self.adopt)
        for name in failed_sets(sets):
            self._annotate(APPLICATION_SET, name, REFRESH_SET)

    def _annotate(self, kind: Kind, name: str, annotations: Mapping[str, str]) -> None:
        """Ignores objects that were deleted meanwhile."""
        with suppress(NotFound):
            self.kube.patch(
                kind, name, ARGOCD_NAMESPACE, {"metadata": {"annotations": annotations}}
            )


def not_refreshed(items: Iterable[Object], *, since: float) -> set[str]:
    """Names of Applications that Argo CD, started at `since`, has not compared with git since."""
    return {
        each["metadata"]["name"]
        for each in items
        if _compared_at(each.get("status") or {}) < math.floor(since)
    }


def unanswered(
    items: Iterable[Object],
    asked: Mapping[str, float],
    *,
    since: float,
    now: float,
    behind: Collection[str] = (),
) -> list[str]:
    """Names of Applications that Argo CD should refresh now.

    Those that it has not compared since its start, or could not compare: otherwise its controller
    waits for the next poll, also if an app cluster was not up yet when it started.
    asked: time of the last request by name; now: the current time, both in seconds of one clock.
    behind: result of `find_behind`.
    """
    items = list(items)
    unknown = {
        each["metadata"]["name"]
        for each in items
        if ((each.get("status") or {}).get("sync") or {}).get("status") == "Unknown"
    }
    return [
        name
        for name in sorted(unknown | not_refreshed(items, since=since) | {*behind})
        if now - asked.get(name, -math.inf) >= ASK_AGAIN
    ]


def find_behind(items: Iterable[Object], url: str, is_old: Callable[[str], bool]) -> list[str]:
    """Names of a repository's Applications that were last compared with an older commit."""
    return [
        each["metadata"]["name"]
        for each in items
        if is_touched(each, url, frozenset([EVERYTHING]))
        and is_old(((each.get("status") or {}).get("sync") or {}).get("revision") or "")
    ]


def failed_sets(items: Iterable[Object]) -> list[str]:
    """Names of ApplicationSets that failed to generate their Applications, and should retry."""
    return [each["metadata"]["name"] for each in items if is_true(each, "ErrorOccurred")]


def _compared_at(status: Object) -> float:
    """Time of Argo CD's last comparison, in whole seconds since the epoch."""
    return parse_stamp(status.get("reconciledAt")) or 0.0
