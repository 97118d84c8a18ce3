"""Waits until all Applications are Synced and Healthy, and Argo CD is reachable."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from k8s_ucp.components.adoption.adopted_argocd import FORMER_PROJECT, project_of
from k8s_ucp.components.ownership.tracking import tracker
from k8s_ucp.components.pods import argocd_pods
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.gitops.publish.addresses import read_addresses
from k8s_ucp.gitops.publish.repositories import SETS
from k8s_ucp.inspect.applications import health_of, is_settled
from k8s_ucp.inspect.pods.problems import (
    NO_PROBLEMS,
    PodProblems,
    find_pod_problems,
    reason_and_pods,
)
from k8s_ucp.kube import APP_PROJECT, APPLICATION, APPLICATION_SET, Kube, KubeError, Object
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.steps.waiting.argocd_refresh import RefreshRequests, find_behind, not_refreshed
from k8s_ucp.steps.waiting.await_environments import pulls_images, running_environments
from k8s_ucp.sync_status import sync_of
from k8s_ucp.topology.rules.names import is_deployed

SECONDS = 180.0
POD_SECONDS = 600.0
"""Timeout with real pods, whose images may have to be pulled."""
PUSH_SECONDS = 20.0
"""How long to wait for Argo CD to see a push: a paused Application is never compared again."""
POD_QUESTION_SECONDS = 5.0
"""Interval of queries for pods that can't be scheduled."""

ADDONS = "platform-"
"""Prefix of the Applications of add-ons."""
_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)/")


def _preview_applications(context: StartContext) -> Iterator[PlannedChange]:
    found = context.planned
    if found is None:
        return
    items = context.applications() if context.core_responds() else []
    by_name = {each["metadata"]["name"]: each for each in items}
    paths = found.apps.clone.listing(found.apps.commit, "apps")
    for name in expected(paths, running_environments(context)):
        item = by_name.get(name)
        if item is None:
            why = "the app repository has an overlay for it"
            yield PlannedChange(
                "create" if context.core_responds() else "wait", f"Application {name}", why
            )
        elif is_settled(item) and not found.changed:
            yield PlannedChange("keep", f"Application {name}", "it is Synced and Healthy")
        else:
            why = f"it is {sync_of(item)} and {health_of(item)}"
            yield PlannedChange("wait", f"Application {name}", why)


@step("Wait for the applications", preview=_preview_applications)
def await_applications(context: StartContext, report: Report) -> None:
    wanted = expected(
        context.published.apps.clone.listing(context.published.apps.commit, "apps"),
        running_environments(context),
    )

    moved = not context.only and sets_have_moved(context)
    again = RefreshRequests(context.kube, context.topology.spec.core.adopt)
    pods = _PodProblems(context)
    push = _OwnPush(context)

    def pending() -> str:
        items = context.applications()
        if context.only:
            items = [each for each in items if each["metadata"]["name"] in wanted]
        known = pods.known(items)
        waiting = not_yet(wanted, items, since=context.argocd_since, pods=known)
        behind = push.behind(items)
        waiting += [f"{name}: not compared with what was pushed yet" for name in behind]
        missing = "; ".join([*waiting, *(not_moved(items) if moved else ())])
        if missing:
            again.request_refresh(items, since=context.argocd_since, behind=behind)
        return missing

    context.wait(
        "Applications Synced and Healthy",
        pending,
        report,
        seconds=POD_SECONDS if pulls_images(context) else SECONDS,
        next="ucp doctor shows the file or command that fixes each",
    )
    if moved:
        remove_former_project(context.kube)


@dataclass
class _OwnPush:
    """The push of this start to the core repository, if the running Argo CD had not seen it.

    Applications that it compared before are still Synced, even if, say, a new database is missing.
    """

    context: StartContext
    _until: float = field(default_factory=lambda: time.monotonic() + PUSH_SECONDS)
    _old: dict[str, bool] = field(default_factory=dict)

    def behind(self, items: Sequence[Object]) -> list[str]:
        """Names of Applications that have not been compared with the push yet."""
        core = self.context.published.core
        if not core.changed or self.context.only or time.monotonic() > self._until:
            return []
        return find_behind(items, self._url, self._is_old)

    @cached_property
    def _url(self) -> str:
        """Address from which Argo CD reads the core repository."""
        return read_addresses(self.context.topology, self.context.gitops).core

    def _is_old(self, revision: str) -> bool:
        core = self.context.published.core
        if revision not in self._old:
            self._old[revision] = False
            if revision not in ("", core.commit):
                # If the clone doesn't have it, someone has pushed since.
                with suppress(GitFailed):
                    self._old[revision] = core.clone.contains(core.commit, revision)
        return self._old[revision]


@dataclass
class _PodProblems:
    """Problems of pods, cached, since reading them takes requests to each cluster."""

    context: StartContext
    _asked: float = field(default_factory=time.monotonic)
    """Starts now, since at first all pods are still to be scheduled."""
    _found: PodProblems = field(default_factory=dict)

    def known(self, items: Sequence[Object]) -> PodProblems:
        """By cluster. items: all Applications."""
        if time.monotonic() - self._asked >= POD_QUESTION_SECONDS:
            topology, state = self.context.topology, self.context.state
            clusters = (topology.app_cluster(each) for each in running_environments(self.context))
            files = {name: file for name in clusters if (file := state.kubeconfig(name)).exists()}
            self._found = find_pod_problems(topology, items, files)
            self._asked = time.monotonic()
        return self._found


def sets_have_moved(context: StartContext) -> bool:
    """Whether the core repository has the ApplicationSets, without the app repository's project."""
    core = context.published.core
    return not core.clone.listing(core.commit, f"projects/{FORMER_PROJECT}.yaml")


def not_moved(items: Iterable[Object]) -> list[str]:
    """What still uses the project of ApplicationSets in the app repository, in words."""
    return [
        f"{each['metadata']['name']}: still in the project {FORMER_PROJECT}"
        for each in items
        if each["metadata"]["name"] == SETS.strip("/")
        and each["spec"].get("project") == FORMER_PROJECT
    ]


def remove_former_project(kube: Kube) -> None:
    """Delete the project of ApplicationSets in the app repository; Argo CD never prunes projects.

    It is kept if it isn't ours, or still in use.
    """
    found = kube.find(APP_PROJECT, FORMER_PROJECT, ARGOCD_NAMESPACE)
    if found is None or not tracker(found):
        return
    items = [
        *kube.list_all(APPLICATION, ARGOCD_NAMESPACE),
        *kube.list_all(APPLICATION_SET, ARGOCD_NAMESPACE),
    ]
    if not any(project_of(each) == FORMER_PROJECT for each in items):
        kube.delete(APP_PROJECT, FORMER_PROJECT, ARGOCD_NAMESPACE, uid=found["metadata"]["uid"])


def expected(paths: Iterable[str], environments: Iterable[str]) -> list[str]:
    """Names of the Applications for the overlays in the app repository."""
    running = set(environments)
    found = {(each[1], each[2]) for path in paths if (each := _OVERLAY.match(path))}
    return sorted(
        f"{app}-{environment}"
        for app, environment in found
        if environment in running and is_deployed(app)
    )


def not_yet(
    wanted: Iterable[str],
    items: Sequence[Object],
    *,
    since: float = 0,
    pods: PodProblems = NO_PROBLEMS,
) -> list[str]:
    """What is missing for each Application, in words. items: all Applications.

    since: seconds since the epoch; Argo CD's earlier comparisons don't count.
    """
    by_name = {each["metadata"]["name"]: each for each in items}
    stale = not_refreshed(items, since=since)
    missing = [f"{name}: not created yet" for name in wanted if name not in by_name]
    for name, item in sorted(by_name.items()):
        if not is_settled(item):
            reason = reason_and_pods(item, pods)
            missing.append(f"{name}: {sync_of(item)}, {health_of(item)}{reason and f' ({reason})'}")
        elif name in stale:
            missing.append(f"{name}: not refreshed since the start")
    return missing


def _preview_ingress(context: StartContext) -> Iterator[PlannedChange]:
    core = context.topology.core_cluster
    yield PlannedChange(
        "wait", "Argo CD's address", f"the ingress controller of {core} routes to it"
    )


@step("Wait until Argo CD is reachable", preview=_preview_ingress)
def await_ingress(context: StartContext, report: Report) -> None:
    """The ingress controller of the core, deployed by a commit, has to route to it."""
    if argocd_pods.FORWARD in context.placement.states():
        context.placement.remove([argocd_pods.FORWARD])
    report(context.argocd_url)

    def pending() -> str:
        found = context.argocd_health()
        return "" if found.ready else "; ".join([found.message, *_addons(context)])

    context.wait(
        f"Argo CD at {context.argocd_url}", pending, seconds=POD_SECONDS, next="see `ucp status`"
    )


def _addons(context: StartContext) -> list[str]:
    """Add-ons that Argo CD reports as not healthy; the ingress controller is one of them."""
    try:
        items = context.applications()
    except KubeError as error:
        return [error.message]
    return not_yet([], [each for each in items if each["metadata"]["name"].startswith(ADDONS)])
