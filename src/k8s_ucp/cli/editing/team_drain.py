"""Removes a team in a safe order: claims, Applications, projects, namespaces.

Each wait has a deadline, and names what is stuck with its last error. What isn't provably the
team's, or contains anything, is kept and reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from k8s_ucp import names
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.deletion import delete_on_each, report_kept, wait_for
from k8s_ucp.cli.editing.namespace_deletion import delete_namespace, simulated_environments
from k8s_ucp.cli.editing.removal_plan import preview_applications
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import some_of
from k8s_ucp.gitops.render.values.claims import API_VERSION, EMPTY_FOLDER, FOLDER, README
from k8s_ucp.gitops.render.values.teams import CLAIMS
from k8s_ucp.inspect.resource_conditions import stuck
from k8s_ucp.kube import (
    APP_PROJECT,
    APPLICATION,
    APPLICATION_SET,
    Kind,
    Kube,
    KubeError,
    NotFound,
    Object,
    annotations_of,
    labels_of,
)
from k8s_ucp.reconciler.draining import end_sync

if TYPE_CHECKING:
    from k8s_ucp.topology import Team, Topology

TEAM = f"{names.GROUP}/team"


def without_claims(files: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """A change of a team's repository: deletes all claims, and keeps the folder."""
    found = [each for each in files if each.startswith(FOLDER) and each != README]
    kept = {} if README in files or not found else EMPTY_FOLDER
    return {**kept, **dict.fromkeys(found)}


def await_claims_deleted(
    kube: Kube, team: Team, report: Report = lambda _: None, *, seconds: float
) -> None:
    """Wait for their deletion. Raises DeadlineExceeded with the remaining claims and reasons."""
    with contextlib.suppress(KubeError):
        application = f"{team.namespace}.claims"
        change = {"metadata": {"annotations": names.REFRESH}}
        kube.patch(APPLICATION, application, names.ARGOCD_NAMESPACE, change)
    kinds = [Kind(API_VERSION, kind, plural) for kind, plural in CLAIMS.items()]

    def pending() -> str:
        claims = [each for kind in kinds for each in _list(kube, kind, team.namespace)]
        return "; ".join(stuck(claims, lambda reference: _find(kube, reference, team)))

    wait_for(
        f"deletion of the claims of {team.name}",
        pending,
        report,
        seconds=seconds,
        pause=1.0,
        next=f"fix the cause, then run ucp team remove {team.name} again: it continues",
    )


def await_projects_deleted(
    kube: Kube, topology: Topology, team: Team, report: Report = lambda _: None, *, seconds: float
) -> None:
    """Delete Applications that no ApplicationSet restores, and wait until they are gone.

    Waits for the team's ApplicationSets and projects, too. Raises DeadlineExceeded.
    """
    labels = f"{TEAM}={team.name},{names.TOPOLOGY}={topology.name}"
    start = f"{team.namespace}."

    def pending() -> str:
        sets = [
            f"ApplicationSet {each['metadata']['name']}"
            for each in kube.list_all(APPLICATION_SET, names.ARGOCD_NAMESPACE)
            if each["metadata"]["name"].startswith(start)
        ]
        applications = kube.list_all(APPLICATION, names.ARGOCD_NAMESPACE, labels=labels)
        for application in applications:
            # A set keeps Applications in protected environments; this removal was requested by a
            # person.
            if application["metadata"].get("deletionTimestamp"):
                end_sync(kube, application)
            elif not sets:
                name, uid = application["metadata"]["name"], application["metadata"]["uid"]
                kube.delete(APPLICATION, name, names.ARGOCD_NAMESPACE, uid=uid)
        left = [
            *sets,
            *(f"Application {each['metadata']['name']}" for each in applications),
            *(
                f"AppProject {each['metadata']['name']}"
                for each in kube.list_all(APP_PROJECT, names.ARGOCD_NAMESPACE)
                if each["metadata"]["name"].startswith(start)
            ),
        ]
        return some_of(left)

    wait_for(
        f"deletion of the Applications and projects of {team.name}",
        pending,
        report,
        seconds=seconds,
        next="ucp status",
    )


def preview_claims(core: Kube, team: Team, files: Mapping[str, bytes]) -> Iterator[PlannedChange]:
    """What the commit to the team's repository deletes, including data."""
    for path, content in sorted(without_claims(files).items()):
        if content is None:
            yield PlannedChange(
                "delete", f"{team.name}: {path}", "the team's claims are deleted first"
            )
    for kind in (Kind(API_VERSION, kind, plural) for kind, plural in CLAIMS.items()):
        for each in _list(core, kind, team.namespace):
            what = f"{kind.kind} {each['metadata']['name']}"
            if names.TRACKING_ID in annotations_of(each):
                lost = f"{what} of {team.name} with its data"
                yield PlannedChange(
                    "delete", what, "its file is removed from the team's repository", lost
                )
            else:
                why = "it is not of the team's repository: the removal waits until it is deleted"
                yield PlannedChange("wait", what, why)


def preview_team(topology: Topology, team: Team, core: Kube) -> Iterator[PlannedChange]:
    """What is deleted after the claims."""
    labels = f"{TEAM}={team.name},{names.TOPOLOGY}={topology.name}"
    found = core.list_all(APPLICATION, names.ARGOCD_NAMESPACE, labels=labels)
    yield from preview_applications(topology, found)
    for each in core.list_all(APP_PROJECT, names.ARGOCD_NAMESPACE):
        if (name := each["metadata"]["name"]).startswith(f"{team.namespace}."):
            yield PlannedChange("delete", f"AppProject {name}", f"it belongs to {team.name}")

    for where in [*(each.name for each in topology.spec.environments), topology.core_cluster]:
        what = f"namespace {team.namespace} on {where}"
        yield PlannedChange("delete", what, "unless it still contains objects of others")
    yield PlannedChange("keep", f"repository of team {team.name}", "repositories are never deleted")


def delete_team_namespaces(call: Invocation, topology: Topology, team: Team, core: Kube) -> None:
    """Delete a team's namespace on every cluster with a kubeconfig here; print those kept."""

    def ours(found: Object) -> bool:
        labels = labels_of(found)
        made = labels.get(TEAM) == team.name and labels.get(names.TOPOLOGY) == topology.name
        return made or labels.get(names.MANAGED_BY) == names.OURS

    simulated = simulated_environments(topology)

    def delete(kube: Kube, namespace: str, environment: str) -> str:
        application = f"platform-{namespace}.{environment}"
        volumes_too = simulated[environment]
        return delete_namespace(kube, namespace, application, volumes_too=volumes_too, ours=ours)

    namespaces = {environment: [team.namespace] for environment in simulated}
    delete_on_each(call, topology, "namespace", namespaces, delete)
    if why := delete_namespace(core, team.namespace, "teams", volumes_too=False, ours=ours):
        report_kept(call, f"namespace {team.namespace}", topology.core_cluster, why)


def _list(kube: Kube, kind: Kind, namespace: str) -> list[Object]:
    try:
        found = kube.list_all(kind, namespace)
    except NotFound:
        return []  # The kind is not served: nothing was ever claimed.
    return [{**each, "kind": kind.kind} for each in found]


def _find(kube: Kube, reference: Mapping[str, str], team: Team) -> Object | None:
    try:
        kind = kube.kind_of(reference["apiVersion"], reference["kind"])
        found = kube.find(kind, reference["name"], team.namespace if kind.namespaced else None)
    except (KubeError, KeyError):
        return None
    return None if found is None else {**found, "kind": kind.kind}
