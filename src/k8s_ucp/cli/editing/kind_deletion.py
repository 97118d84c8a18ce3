"""Deletes the kinds (CRDs) that an app installed, once the app is removed and none is in use.

Argo CD never deletes CRDs, since all their objects would be deleted, too. Here nothing is lost: a
CRD is kept if an object of it exists, or anyone else declares it.
https://github.com/argoproj/argo-cd/issues/613
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import (
    delete_and_wait,
    delete_on_each,
    is_tracked_by,
    open_core,
    query_each,
)
from k8s_ucp.components.ownership.generated_kinds import kind_of_crd
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.kube import APPLICATION, CRD, Kube, KubeError, Object
from k8s_ucp.names import ARGOCD_MANAGER, ARGOCD_NAMESPACE

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

DELETION_SECONDS = 30.0
_APPLIERS = frozenset({ARGOCD_MANAGER, "kube-apiserver"})
"""Field managers of a CRD that only Argo CD has applied."""


def kinds_of_app(call: Invocation, topology: Topology, app: str) -> Mapping[str, frozenset[str]]:
    """{environment: names of CRDs} of a running app; empty if the core isn't running."""
    kube = open_core(call, topology)
    if kube is None:
        return {}
    with contextlib.closing(kube):
        applications = {
            each["metadata"]["name"]: each for each in kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        }
    return {
        each.name: declared_kinds(applications.get(f"{app}-{each.name}", {}))
        for each in topology.spec.environments
    }


def merged_kinds(
    *found: Mapping[str, Collection[str]],
) -> dict[str, frozenset[str]]:
    """Merge the results of several runs of a removal, by environment."""
    locations = {location for each in found for location in each}
    return {
        location: frozenset(name for each in found for name in each.get(location, ()))
        for location in sorted(locations)
    }


def delete_kinds(
    call: Invocation, topology: Topology, kinds_by_environment: Mapping[str, Collection[str]]
) -> None:
    """Delete an app's CRDs in every environment.

    topology: without the app, whose Applications are deleted. Kept CRDs are printed; this never
    fails the removal, which is pushed already.
    """
    core = open_core(call, topology) if any(kinds_by_environment.values()) else None
    if core is None:
        return
    with contextlib.closing(core):
        try:
            applications = core.list_all(APPLICATION, ARGOCD_NAMESPACE)
        except KubeError as error:
            kinds = ", ".join(sorted(set().union(*kinds_by_environment.values())))
            call.console.say(f"note: kinds are kept ({kinds}): {error.message}")
            return

    def delete(kube: Kube, name: str, environment: str) -> str:
        return _delete(kube, name, declaring(applications, name, topology.app_cluster(environment)))

    delete_on_each(call, topology, "kind", kinds_by_environment, delete)


def declared_kinds(application: Object) -> frozenset[str]:
    """Names of the CRDs that an Application deploys."""
    resources = (application.get("status") or {}).get("resources") or ()
    return frozenset(each["name"] for each in resources if each.get("kind") == CRD.kind)


def declaring(applications: Collection[Object], name: str, cluster: str) -> list[str]:
    """Applications that deploy a CRD to a cluster."""
    return [
        each["metadata"]["name"]
        for each in applications
        if each["spec"].get("destination", {}).get("name") == cluster
        and name in declared_kinds(each)
    ]


def why_kept(crd: Object, declared_by: Collection[str], objects: int) -> str:
    """Why a CRD is kept; "" if nobody else uses it."""
    managers = {str(each.get("manager")) for each in crd["metadata"].get("managedFields") or ()}
    if others := sorted(managers - _APPLIERS):
        return f"{', '.join(others)} wrote to it"
    if not managers:
        return "it is not known who created it"
    if declared_by:
        return f"{', '.join(declared_by)} declares it too"
    if objects:
        return "an object of it exists" if objects == 1 else f"{objects} objects of it exist"
    return ""


def preview_kinds(
    call: Invocation, topology: Topology, app: str, applications: Collection[Object]
) -> Iterator[PlannedChange]:
    """What `delete_kinds` would do once the app is removed. topology: with the app."""
    by_name = {each["metadata"]["name"]: each for each in applications}
    own = {each.name: f"{app}-{each.name}" for each in topology.spec.environments}
    others = [each for each in applications if each["metadata"]["name"] not in own.values()]

    def why(kube: Kube, name: str, environment: str) -> str:
        crd = kube.find(CRD, name)
        if crd is None:
            return ""
        kind = kind_of_crd(crd)
        left = [
            each
            for each in (kube.list_all(kind) if kind else ())
            if not is_tracked_by(each, own[environment])
        ]
        declared_by = declaring(others, name, topology.app_cluster(environment))
        return why_kept(crd, declared_by, len(left))

    kinds = {
        name: declared_kinds(by_name.get(application, {})) for name, application in own.items()
    }
    for name, environment, reason in query_each(call, topology, kinds, why):
        what = f"kind {name} on {environment}"
        yield PlannedChange("keep" if reason else "delete", what, reason or f"only {app} uses it")


def _delete(kube: Kube, name: str, declared_by: Collection[str]) -> str:
    """Why it is kept; "" if it is deleted, or did not exist. Raises UcpError."""
    crd = kube.find(CRD, name)
    if crd is None or crd["metadata"].get("deletionTimestamp"):
        return ""
    kind = kind_of_crd(crd)
    objects = len(kube.list_all(kind)) if kind else 0
    if why := why_kept(crd, declared_by, objects):
        return why
    what = f"deletion of the kind {name}"
    delete_and_wait(kube, CRD, crd, what, seconds=DELETION_SECONDS)
    return ""
