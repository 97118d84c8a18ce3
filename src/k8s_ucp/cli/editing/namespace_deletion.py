"""Deletes the namespaces that Argo CD created for an app, once the app is removed.

A namespace is kept if it contains objects of others, or volumes with data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from k8s_ucp import names
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import (
    delete_and_wait,
    delete_on_each,
    is_tracked_by,
    query_each,
)
from k8s_ucp.engine.planned_change import Action, PlannedChange
from k8s_ucp.errors import some_of
from k8s_ucp.gitops.render.values.permissions import namespaces_of, taken_namespaces
from k8s_ucp.kube import NAMESPACE, Kube, Object, annotations_of, labels_of
from k8s_ucp.names import ARGOCD_MANAGER
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Topology

DELETION_SECONDS = 60.0
_ABSENT = "absent"
_PASSING = frozenset({"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"})
_IN_EVERY_NAMESPACE = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})


def delete_namespaces(call: Invocation, topology: Topology, app: App) -> None:
    """Delete an app's namespaces in every environment whose cluster has a kubeconfig here.

    topology: without the app. Kept namespaces are printed; this never fails the removal, which is
    pushed already.
    """
    simulated = simulated_environments(topology)

    def delete(kube: Kube, namespace: str, environment: str) -> str:
        return delete_namespace(
            kube, namespace, f"{app.name}-{environment}", volumes_too=simulated[environment]
        )

    delete_on_each(call, topology, "namespace", _named(topology, app), delete)


def preview_namespaces(call: Invocation, topology: Topology, app: App) -> Iterator[PlannedChange]:
    """What `delete_namespaces` would do once the app is removed. topology: without the app."""
    simulated = simulated_environments(topology)

    def why(kube: Kube, namespace: str, environment: str) -> str:
        found = kube.find(NAMESPACE, namespace)
        application, volumes_too = f"{app.name}-{environment}", simulated[environment]
        return why_kept(kube, found, application, volumes_too=volumes_too) if found else _ABSENT

    for name, environment, reason in query_each(call, topology, _named(topology, app), why):
        if reason != _ABSENT:
            yield planned_namespace(name, environment, reason)


def planned_namespace(name: str, where: str, why: str) -> PlannedChange:
    """why: it is kept; empty if it is deleted."""
    action: Action = "keep" if why else "delete"
    return PlannedChange(action, f"namespace {name} on {where}", why or "nobody else uses it")


def _named(topology: Topology, app: App) -> dict[str, list[str]]:
    taken = taken_namespaces(topology)
    wanted = [each for each in namespaces_of(app) if each not in taken]
    return {each.name: wanted for each in topology.spec.environments}


def simulated_environments(topology: Topology) -> dict[str, bool]:
    """{environment: whether its cluster simulates pods, so that its volumes hold no data}"""
    environments = topology.spec.environments
    return {each.name: PROVIDERS[each.cluster.provider].simulated for each in environments}


def made_for_apps(namespace: Object) -> bool:
    """Whether Argo CD created a namespace as an app's destination, or our reconciler did.

    A namespace that an Application declares, and Argo CD tracks, is left to that Application.
    """
    about = namespace["metadata"]
    if names.TRACKING_ID in annotations_of(namespace):
        return False
    if labels_of(namespace).get(names.MANAGED_BY) == names.OURS:
        return True
    managers = {each.get("manager") for each in about.get("managedFields") or ()}
    return ARGOCD_MANAGER in managers


def delete_namespace(
    kube: Kube,
    namespace: str,
    application: str,
    *,
    volumes_too: bool,
    ours: Callable[[Object], bool] = made_for_apps,
) -> str:
    """Why it is kept; "" if it is deleted, or did not exist. Raises UcpError."""
    found = kube.find(NAMESPACE, namespace)
    if found is None:
        return ""
    if why := why_kept(kube, found, application, volumes_too=volumes_too, ours=ours):
        return why
    what = f"deletion of the namespace {namespace}"
    delete_and_wait(kube, NAMESPACE, found, what, seconds=DELETION_SECONDS)
    return ""


def why_kept(
    kube: Kube,
    found: Object,
    application: str,
    *,
    volumes_too: bool,
    ours: Callable[[Object], bool] = made_for_apps,
) -> str:
    """Why a namespace is kept; "" if nobody else uses it. Raises UcpError."""
    if not ours(found):
        return "it was not created by ucp for it"
    namespace = found["metadata"]["name"]
    with ThreadPoolExecutor(8, "list") as pool:
        kinds = [each for each in kube.namespaced_kinds() if each.kind not in _PASSING]
        listed = pool.map(lambda kind: (kind.kind, kube.list_all(kind, namespace)), kinds)
        items = [(kind, item) for kind, items in listed for item in items]
    if held := list(held_by(items, application, volumes_too=volumes_too)):
        return f"it contains {some_of(held, 3)}"
    return ""


def held_by(
    items: Iterable[tuple[str, Object]], application: str, *, volumes_too: bool
) -> Iterator[str]:
    """`Kind name` of objects for which the namespace of a removed Application is kept.

    items: (kind, object). volumes_too: claims contain no data, as on simulated clusters.
    """
    for kind, item in items:
        about = item["metadata"]
        if about.get("ownerReferences") or about.get("deletionTimestamp"):
            continue  # It is deleted automatically.
        if (kind, about["name"]) in _IN_EVERY_NAMESPACE:
            continue
        if is_tracked_by(item, application):
            continue  # A hook, such as a Job.
        if labels_of(item).get(names.MANAGED_BY) == names.OURS:
            continue  # A copy of a mirror, or a Role for mirrors.
        if kind == "PersistentVolumeClaim" and volumes_too:
            continue
        yield f"{kind} {about['name']}"
