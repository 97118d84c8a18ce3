"""Wait until Argo CD says that every application is what git says, and healthy."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from k8s_ucp.gitops.refresh import REFRESH, REFRESH_SET
from k8s_ucp.kube import APPLICATION, APPLICATION_SET, Kind, Kube, KubeError, NotFound, Object
from k8s_ucp.pipeline import Report
from k8s_ucp.reconciler.conditions import is_true
from k8s_ucp.reconciler.marks import ARGOCD_NAMESPACE
from k8s_ucp.steps.await_environments import pulls_images, running_environments
from k8s_ucp.steps.context import Context
from k8s_ucp.waiting import wait_until

SECONDS = 180.0
POD_SECONDS = 600.0
"""Where pods really run, their images may have to be pulled."""
PAUSE = 0.25
ASK_AGAIN = 2.0
"""Seconds."""

_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)/")


@dataclass(frozen=True)
class AwaitApplications:
    id: str = "await-applications"
    title: str = "Wait for the applications"

    def run(self, context: Context, report: Report) -> None:
        wanted = expected(
            context.published.apps.clone.listing(context.published.apps.commit, "apps"),
            running_environments(context),
        )

        asked: dict[str, float] = {}
        asked_sets: dict[str, float] = {}

        def look() -> str:
            try:
                items = context.kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
                now = time.monotonic()
                for name in unanswered(items, asked, since=context.argocd_since, now=now):
                    asked[name] = now
                    _ask(context.kube, APPLICATION, name)
                waiting = not_yet(wanted, items, since=context.argocd_since)
                sets = context.kube.list_all(APPLICATION_SET, ARGOCD_NAMESPACE) if waiting else []
                for name in failed_sets(sets, asked_sets, now=now):
                    asked_sets[name] = now
                    _ask(context.kube, APPLICATION_SET, name)
            except KubeError as error:
                return error.message
            missing = "; ".join(waiting)
            report(missing)
            return missing

        wait_until(
            "applications synced and healthy",
            look,
            seconds=POD_SECONDS if pulls_images(context) else SECONDS,
            cancel=context.cancel,
            pause=PAUSE,
            next="see `ucp status`",
        )


def expected(paths: Iterable[str], environments: Iterable[str]) -> list[str]:
    """Names of the Applications that the app repository's overlays stand for."""
    running = set(environments)
    found = {(each[1], each[2]) for path in paths if (each := _OVERLAY.match(path))}
    return sorted(f"{app}-{environment}" for app, environment in found if environment in running)


def not_yet(wanted: Iterable[str], items: Sequence[Object], *, since: float = 0) -> list[str]:
    """What is missing for each application, in words. items: all Applications.

    since: seconds since the epoch; what Argo CD said before doesn't count.
    """
    by_name = {each["metadata"]["name"]: each for each in items}
    waiting = overlooked(items, since=since)
    missing = [f"{name}: not there yet" for name in wanted if name not in by_name]
    for name, item in sorted(by_name.items()):
        status = item.get("status") or {}
        sync = (status.get("sync") or {}).get("status")
        health = (status.get("health") or {}).get("status")
        if (sync, health) != ("Synced", "Healthy"):
            missing.append(f"{name}: {sync or 'Unknown'}, {health or 'Unknown'}{_why(status)}")
        elif name in waiting:
            missing.append(f"{name}: not looked at since the start")
    return missing


def overlooked(items: Iterable[Object], *, since: float) -> set[str]:
    """Names of Applications that Argo CD, started at `since`, has not compared with git again."""
    return {
        each["metadata"]["name"]
        for each in items
        if _looked_at(each.get("status") or {}) < math.floor(since)
    }


def unanswered(
    items: Iterable[Object], asked: Mapping[str, float], *, since: float, now: float
) -> list[str]:
    """Names of Applications that Argo CD is to look at again, at once.

    Those it has not looked at since its start and those it could not compare: left alone, its
    controller waits for the next poll, also after a start that found an app cluster not yet up.
    asked: when each was asked for last; now: both in seconds of one clock.
    """
    items = list(items)
    unknown = {
        each["metadata"]["name"]
        for each in items
        if ((each.get("status") or {}).get("sync") or {}).get("status") == "Unknown"
    }
    return [
        name
        for name in sorted(unknown | overlooked(items, since=since))
        if now - asked.get(name, -math.inf) >= ASK_AGAIN
    ]


def failed_sets(items: Iterable[Object], asked: Mapping[str, float], *, now: float) -> list[str]:
    """Names of ApplicationSets that could not make their Applications: they are to try again.

    Left alone, Argo CD waits for three minutes after a repository did not answer once. asked, now:
    as for `unanswered`.
    """
    return [
        each["metadata"]["name"]
        for each in items
        if is_true(each, "ErrorOccurred")
        and now - asked.get(each["metadata"]["name"], -math.inf) >= ASK_AGAIN
    ]


def _ask(kube: Kube, kind: Kind, name: str) -> None:
    """Have Argo CD look at one. Raises KubeError; one that left meanwhile is no error."""
    annotations = REFRESH if kind is APPLICATION else REFRESH_SET
    with suppress(NotFound):
        kube.patch(kind, name, ARGOCD_NAMESPACE, {"metadata": {"annotations": annotations}})


def _looked_at(status: Object) -> float:
    """When Argo CD compared it last, in whole seconds since the epoch."""
    text = status.get("reconciledAt")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _why(status: Object) -> str:
    operation = status.get("operationState") or {}
    texts = [str(each.get("message")) for each in status.get("conditions") or []]
    if operation.get("phase") in ("Failed", "Error"):
        texts.append(str(operation.get("message")))
    return f" ({texts[0][:200]})" if texts else ""
