"""Waits until the app clusters declared in the core repository are up and registered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.context import StartContext, planned_cluster
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.applications import find_problems
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import composites, environment_resources
from k8s_ucp.inspect.resource_conditions import Cause
from k8s_ucp.inspect.status import environment_causes
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET, Kube, KubeError, Object, labels_of
from k8s_ucp.providers import DEFAULT, PROVIDERS, cloud_providers
from k8s_ucp.reconciler.local_clusters.rules import CREATE_FAILED
from k8s_ucp.reconciler.registration.forced_deregistration import undo_teardown
from k8s_ucp.reconciler.runtime.conditions import find
from k8s_ucp.steps.waiting.argocd_refresh import RefreshRequests
from k8s_ucp.topology import Topology

SECONDS = 180.0
POD_SECONDS = 600.0
"""Timeout with real pods, whose images may have to be pulled."""
CLOUD_SECONDS = 2400.0
"""A cluster in a cloud takes a quarter of an hour to create, and may need a second attempt."""
BLOCKED_SECONDS = 10.0
"""Seconds until it is worth looking for what blocks progress."""
PROBLEM_SECONDS = 2.0
"""Interval of looking for it: a list of Applications takes the machine 7 ms."""
CAUSE_SECONDS = 5.0
"""Interval of queries for causes in clouds, which take a request per kind."""


def _preview_environments(context: StartContext) -> Iterator[PlannedChange]:
    """Clusters on this machine by their providers; those in clouds by their registrations."""
    declared = {each.name: each.cluster.provider for each in context.topology.spec.environments}
    known = [each.name for each in context.topology.spec.environments if each.state == "running"]
    registered: list[Object] = []
    if context.core_responds():
        registered = context.kube.list_all(
            SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster"
        )
    providers = context.providers
    for name in running_environments(context) if context.planned else known:
        cluster, provider = context.topology.app_cluster(name), declared.get(name, DEFAULT)
        if made_by := providers.get(provider):
            yield planned_cluster(made_by, cluster)
        elif unregistered([name], registered):
            yield PlannedChange(
                "create", f"cluster {cluster}", f"Crossplane creates it ({provider})"
            )
        else:
            yield PlannedChange("keep", f"cluster {cluster}", "it is registered")
        if unregistered([name], registered) or not context.core_responds():
            yield PlannedChange("wait", f"registration of {cluster}", "Argo CD gets access to it")
    yield from _preview_databases(context)


def _preview_databases(context: StartContext) -> Iterator[PlannedChange]:
    """Databases in clouds."""
    kube = context.kube if context.core_responds() else None
    claimed = {each["metadata"]["name"] for each in composites(kube)} if kube else set()
    for each in context.topology.spec.databases:
        for environment in context.topology.spec.environments:
            wanted = each.environments or (environment.name,)
            if environment.name not in wanted or each.provider == "local":
                continue
            what = f"database {each.name} of {environment.name}"
            if f"{each.name}-{environment.name}" in claimed:
                yield PlannedChange("keep", what, "it is already requested from its cloud")
            else:
                yield PlannedChange("create", what, f"Crossplane creates it ({each.provider})")


@step("Wait for the environments' clusters", preview=_preview_environments)
def await_environments(context: StartContext, report: Report) -> None:
    environments = running_environments(context)
    if not environments:
        return
    if back := undo_teardown(context.kube):
        report(f"a `ucp destroy` was interrupted after it had deregistered {', '.join(back)}")

    far = in_clouds(context.topology)
    near = [each for each in environments if each not in far]

    again = RefreshRequests(context.kube, context.topology.spec.core.adopt)
    causes, problems = _CloudCauses(context), _Problems(context)

    def pending() -> str:
        missing: list[str] = []
        items: list[Object] = []
        if near:
            items = context.kube.list_all(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)
            missing = not_yet(near, items) or _silent(context, near)
        if len(near) < len(environments):
            secrets = context.kube.list_all(
                SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster"
            )
            away = [each for each in environments if each in far]
            missing += unregistered(away, secrets, causes.known)
        if missing and context.in_pods:
            # Argo CD's pods are ready now, but started before the repositories were readable.
            again.request_refresh(context.applications(), since=context.argocd_since)
        if missing and problems.are_worth_looking_for():
            # If an Application can't be synced, the objects that it declares are not created.
            missing += problems.known()
            refuse_obstacles(near, items, context.providers)
        return "; ".join(missing)

    context.wait(
        f"environments {', '.join(environments)} up and registered",
        pending,
        report,
        seconds=_patience(context, clouds=len(near) < len(environments)),
        next="ucp doctor shows what to do; see also `ucp status` and `ucp logs reconciler`",
    )


@dataclass
class _Problems:
    """Why Applications can't be synced, cached."""

    context: StartContext
    _began: float = field(default_factory=time.monotonic)
    _asked: float = -math.inf
    _found: Sequence[str] = ()

    def are_worth_looking_for(self) -> bool:
        return time.monotonic() - self._began > BLOCKED_SECONDS

    def known(self) -> Sequence[str]:
        """Empty if Argo CD isn't up yet."""
        if time.monotonic() - self._asked >= PROBLEM_SECONDS:
            self._asked = time.monotonic()
            try:
                self._found = find_problems(self.context.applications())
            except KubeError:
                self._found = ()
        return self._found


def refuse_obstacles(
    environments: Collection[str], items: Sequence[Object], providers: Mapping[str, ClusterProvider]
) -> None:
    """Don't wait for a cluster that can't be started until somebody acts. items: LocalClusters.

    Its condition alone does not say so: it may be that of an earlier start. Raises UcpError.
    """
    for each in items:
        ready = find(each, names.READY)
        if not ready or ready["reason"] != CREATE_FAILED:
            continue
        provider = providers.get(each["spec"]["provider"])
        if not provider or labels_of(each).get(names.ENVIRONMENT) not in environments:
            continue
        if obstacle := provider.state(each["metadata"]["name"]).obstacle:
            raise obstacle


def _patience(context: StartContext, *, clouds: bool) -> float:
    """Timeout in seconds."""
    if clouds:
        return CLOUD_SECONDS
    return POD_SECONDS if pulls_images(context) else SECONDS


def in_clouds(topology: Topology) -> set[str]:
    """Environments whose clusters Crossplane creates, so that they have no LocalCluster."""
    clouds = cloud_providers()
    return {each.name for each in topology.spec.environments if each.cluster.provider in clouds}


def unregistered(
    wanted: Iterable[str],
    secrets: Iterable[Object],
    causes: Callable[[], Mapping[str, Cause]] = dict,
) -> list[str]:
    """What is missing for each environment in a cloud, in words. secrets: Argo CD's clusters.

    causes: returns what their clusters wait for; called if one is missing.
    """
    registered = {labels_of(each).get(names.ENVIRONMENT) for each in secrets}
    missing = [each for each in wanted if each not in registered]
    known = causes() if missing else {}
    return [
        f"{each}: being created, not registered yet{f' ({known[each]})' if each in known else ''}"
        for each in missing
    ]


@dataclass
class _CloudCauses:
    """Why clusters in clouds don't exist yet, cached."""

    context: StartContext
    _asked: float = field(default_factory=time.monotonic)
    """Starts now, since at first no object exists that could report a cause."""
    _found: Mapping[str, Cause] = field(default_factory=dict)

    def known(self) -> Mapping[str, Cause]:
        """By environment. Raises KubeError."""
        if time.monotonic() - self._asked >= CAUSE_SECONDS:
            resources = environment_resources(self.context.kube, self.context.applications())
            self._found = environment_causes(ClusterSnapshot(True, resources=resources))
            self._asked = time.monotonic()
        return self._found


def pulls_images(context: StartContext) -> bool:
    """Whether nodes or pods are real, so that images of a gigabyte may have to be pulled."""
    environments = context.topology.spec.environments
    used = (PROVIDERS[each.cluster.provider] for each in environments)
    return context.in_pods or any(each.makes_nodes for each in used)


def running_environments(context: StartContext) -> list[str]:
    """Environments with an overlay in the core repository that the topology does not stop.

    If the command is about some environments only, those of them.
    """
    stopped = context.topology.stopped_environments
    return [
        each
        for each in all_environments(context)
        if each not in stopped and (not context.only or each in context.only)
    ]


def all_environments(context: StartContext) -> list[str]:
    """The topology's environments in their order, then those that only the repository has."""
    declared = context.published.core.environments()
    known = [each.name for each in context.topology.spec.environments]
    return [each for each in known if each in declared] + [
        each for each in declared if each not in known
    ]


def _silent(context: StartContext, environments: Iterable[str]) -> list[str]:
    """Clusters that don't respond: after a stop, their recorded state is outdated."""
    missing = []
    for name in environments:
        file = context.state.kubeconfig(context.topology.app_cluster(name))
        try:
            kube = Kube.from_file(file)
        except UcpError as error:
            missing.append(f"{name}: {error.message}")
            continue
        if not kube.ready():
            missing.append(f"{name}: its API server is not responding yet")
        kube.close()
    return missing


def not_yet(environments: Iterable[str], items: Sequence[Object]) -> list[str]:
    """What is missing for each environment, in words. items: LocalClusters."""
    by_environment = {labels_of(each).get(names.ENVIRONMENT): each for each in items}
    missing = []
    for name in environments:
        item = by_environment.get(name)
        if item is None:
            missing.append(f"{name}: not declared yet")
            continue
        for kind in (names.READY, names.REGISTERED):
            condition = find(item, kind)
            if condition is None or condition["status"] != "True":
                message = condition["message"] if condition else f"not {kind.lower()} yet"
                missing.append(f"{name}: {message}")
                break
    return missing
