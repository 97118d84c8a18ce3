"""Deletes the namespaces that Argo CD made for an app, once the app is removed.

A namespace that holds anything of somebody else stays, and so does one with volumes that hold data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from k8s_ucp import names
from k8s_ucp.cli.command import Invocation
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.render.values.permissions import namespaces_of, taken_namespaces
from k8s_ucp.kube import NAMESPACE, Kube, Object
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Environment, Topology

LEAVING_SECONDS = 60.0
_ARGOCD = "argocd-controller"
"""Field manager of what Argo CD applies."""
_TRACKING = "argocd.argoproj.io/tracking-id"
_PASSING = frozenset({"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"})
_IN_EVERY_NAMESPACE = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})


def delete_namespaces(call: Invocation, topology: Topology, app: App) -> None:
    """On every environment whose cluster has a kubeconfig here. topology: without the app.

    What stays is said; nothing here fails the removal, which has landed.
    """
    wanted = [each for each in namespaces_of(app) if each not in taken_namespaces(topology)]
    state = call.workspace.state(topology.name)

    def on(environment: Environment) -> list[str]:
        path = state.kubeconfig(topology.app_cluster(environment.name))
        simulated = PROVIDERS[environment.cluster.provider].simulated
        application = f"{app.name}-{environment.name}"
        said = []
        for namespace in wanted if path.exists() else ():
            try:
                with contextlib.closing(Kube.from_file(path)) as kube:
                    why = _delete(kube, namespace, application, volumes_too=simulated)
            except UcpError as error:
                why = error.message
            if why:
                place = f"the namespace {namespace} on {environment.name}"
                said.append(f"note: {place} is retained: {why}")
        return said

    with ThreadPoolExecutor(8, "namespaces") as pool:
        for notes in pool.map(on, topology.spec.environments):
            for each in notes:
                call.console.say(each)


def _delete(kube: Kube, namespace: str, application: str, *, volumes_too: bool) -> str:
    """Why it stays; "" once it is gone, or was never there. Raises UcpError."""
    found = kube.find(NAMESPACE, namespace)
    if found is None:
        return ""
    if not made_for_apps(found):
        return "it was not created for the app"
    with ThreadPoolExecutor(8, "list") as pool:
        kinds = [each for each in kube.namespaced_kinds() if each.kind not in _PASSING]
        listed = pool.map(lambda kind: (kind.kind, kube.list_all(kind, namespace)), kinds)
        items = [(kind, item) for kind, items in listed for item in items]
    if held := list(held_by(items, application, volumes_too=volumes_too)):
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        return f"it contains {', '.join(held[:3])}{more}"
    kube.delete(NAMESPACE, namespace, uid=found["metadata"]["uid"])
    wait_until(
        f"deletion of the namespace {namespace}",
        lambda: "it still exists" if kube.find(NAMESPACE, namespace) else "",
        seconds=LEAVING_SECONDS,
        cancel=Cancel(),
        pause=0.5,
        next="ucp status",
    )
    return ""


def made_for_apps(namespace: Object) -> bool:
    """Argo CD created a namespace because an app goes there, or our reconciler did.

    One that an Application declares, which Argo CD tracks, goes and stays with that Application.
    """
    about = namespace["metadata"]
    if _TRACKING in (about.get("annotations") or {}):
        return False
    if (about.get("labels") or {}).get(names.MANAGED_BY) == names.OURS:
        return True
    managers = {each.get("manager") for each in about.get("managedFields") or ()}
    return _ARGOCD in managers


def held_by(
    items: Iterable[tuple[str, Object]], application: str, *, volumes_too: bool
) -> Iterator[str]:
    """`Kind name` of what keeps a namespace of a removed Application.

    items: (kind, object). volumes_too: claims hold no data, as on simulated clusters.
    """
    for kind, item in items:
        about = item["metadata"]
        if about.get("ownerReferences") or about.get("deletionTimestamp"):
            continue  # It goes by itself.
        if (kind, about["name"]) in _IN_EVERY_NAMESPACE:
            continue
        if str((about.get("annotations") or {}).get(_TRACKING)).startswith(f"{application}:"):
            continue  # A hook, such as a Job.
        if (about.get("labels") or {}).get(names.MANAGED_BY) == names.OURS:
            continue  # A copy of a mirror, or rights in the namespace.
        if kind == "PersistentVolumeClaim" and volumes_too:
            continue
        yield f"{kind} {about['name']}"
