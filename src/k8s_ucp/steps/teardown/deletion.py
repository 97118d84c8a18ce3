"""Deletes databases if requested, then clusters, then their networks and roles.

Only objects with the topology's labels are deleted. A wait that fails names what is stuck, with the
cloud's own messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from k8s_ucp.clusters.user_contexts import forgetting_deleted
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import some_of
from k8s_ucp.inspect.cluster_deletion import in_words, remaining
from k8s_ucp.inspect.crossplane_objects import resource_of
from k8s_ucp.inspect.resource_conditions import stuck
from k8s_ucp.kube import Conflict, Kube, Object, annotations_of
from k8s_ucp.names import HELD
from k8s_ucp.reconciler.draining import set_held
from k8s_ucp.steps.backup.adopt_resources import is_adopting
from k8s_ucp.steps.teardown.abandonment import keep_names, note_abandoned, wait_deleted
from k8s_ucp.steps.teardown.cloud_record import UNSEEN, CloudRecord
from k8s_ucp.steps.teardown.external_resources import outside_of, responding_clusters
from k8s_ucp.steps.teardown.owned_objects import (
    OwnedObjects,
    all_named,
    data_in_clusters,
    named,
    planned_objects,
)

CLAIM_SECONDS = 1800.0
CLUSTER_SECONDS = 2400.0
NETWORK_SECONDS = 900.0
"""Clouds are slow: clusters and databases take a quarter of an hour."""


def _preview_record(context: StartContext) -> Iterator[PlannedChange]:
    outside = outside_of(context)
    for each in outside:
        yield PlannedChange(
            "delete", str(each), "it is deleted with the Application that created it"
        )
    count = len(planned_objects(context).to_delete()) + len(outside)
    if count:
        why = "the cloud is checked for it at the end"
        yield PlannedChange(
            "create", str(context.state.cloud_record.name), f"{count} resources; {why}"
        )


@step("Record what the clouds have", preview=_preview_record)
def record_resources(context: StartContext, report: Report) -> None:
    """Before any deletion, so that a rerun after an interruption knows what to look for."""
    keep_names(context)
    # An earlier run found the clouds empty, but may have kept more than this one.
    context.state.destroyed.unlink(missing_ok=True)
    to_delete = OwnedObjects(context).to_delete()
    record = CloudRecord(context.state.cloud_record)
    record.add(to_delete)
    observed = [each for each in to_delete if is_adopting(each)]
    note_abandoned(
        context, observed, "only observed so far: deleting it changes nothing in its cloud"
    )
    outside = outside_of(context)
    responding = responding_clusters(context, outside)
    # These clusters respond now, unlike in an earlier run.
    record.remove_deleted(
        {
            each.uid
            for each in record.resources()
            if each.kind == UNSEEN and each.cluster in responding
        }
    )
    record.add_resources(outside)
    report(f"{len(to_delete) + len(outside)} resources")


def _preview_claims(context: StartContext) -> Iterator[PlannedChange]:
    for each in planned_objects(context).claims:
        if context.teardown.delete_data:
            what = named(each)
            yield PlannedChange("delete", what, "--delete-data", f"{what} with its data")
        else:
            why = "data is only deleted with --delete-data; it is still billed"
            yield PlannedChange("keep", named(each), why)


@step("Delete databases and machines", preview=_preview_claims)
def delete_claims(context: StartContext, report: Report) -> None:
    found = OwnedObjects(context)
    claims = found.claims
    if not context.teardown.delete_data:
        context.teardown.kept = all_named(claims)
        report(f"kept: {some_of(context.teardown.kept)}" if claims else "")
        return
    recorded = {each.uid for each in CloudRecord(context.state.cloud_record).resources()}
    others = {each["metadata"]["uid"] for each in (*found.cloud_clusters, *found.networks)}
    parts = [each for each in found.managed if each["metadata"]["uid"] in recorded - others]
    _delete(context, claims)

    def pending() -> tuple[str, Sequence[Object]]:
        left = OwnedObjects(context).claims
        words = "; ".join(words for each in left for words in _stuck(context.kube, each))
        # A claim is deleted before its parts are deleted in the cloud.
        stuck = remaining(context.kube, parts)
        return words or some_of([*map(in_words, stuck)]), [*left, *stuck]

    what = "deletion of databases and machines"
    wait_deleted(context, what, pending, report, seconds=CLAIM_SECONDS)


def _stuck(kube: Kube, claim: Object) -> Iterator[str]:
    return stuck([claim], lambda reference: resource_of(kube, claim, reference))


def _preview_clusters(context: StartContext) -> Iterator[PlannedChange]:
    found = planned_objects(context)
    inside = data_in_clusters(context)
    for each in (*found.local_clusters, *found.cloud_clusters):
        lost = ""
        if each["kind"].endswith("Cluster"):
            lost = f"everything on {each['metadata']['name']} that is not in a repository"
            lost += f", with the data of {some_of(inside)}" if inside else ""
        yield PlannedChange("delete", named(each), f"it belongs to {context.topology.name}", lost)


@step("Delete the clusters", preview=_preview_clusters)
def delete_clusters(context: StartContext, report: Report) -> None:
    found = OwnedObjects(context)
    to_delete = [*found.local_clusters, *found.cloud_clusters]
    names = [each["metadata"]["name"] for each in found.local_clusters]
    with forgetting_deleted(map(context.state.kubeconfig, names)):
        _delete_all(context, report, "clusters", to_delete, CLUSTER_SECONDS)


def _preview_networks(context: StartContext) -> Iterator[PlannedChange]:
    found = planned_objects(context)
    for each in found.networks:
        yield PlannedChange("delete", named(each), "its cluster is deleted first")
    for each in found.kept_networks:
        yield PlannedChange("keep", named(each), "databases or machines that are kept may use it")


@step("Delete networks and roles", preview=_preview_networks)
def delete_networks(context: StartContext, report: Report) -> None:
    to_delete = OwnedObjects(context).networks
    for each in to_delete:
        if HELD in annotations_of(each):
            # By an interrupted removal of its environment.
            set_held(context.kube, each, held=False)
    _delete_all(context, report, "networks and roles", to_delete, NETWORK_SECONDS)


def _delete_all(
    context: StartContext, report: Report, what: str, items: Sequence[Object], seconds: float
) -> None:
    _delete(context, items)

    def pending() -> tuple[str, Sequence[Object]]:
        left = remaining(context.kube, items)
        return some_of([*map(in_words, left)]), left

    wait_deleted(context, f"deletion of {what}", pending, report, seconds=seconds)


def _delete(context: StartContext, items: Sequence[Object]) -> None:
    """Delete exactly these objects, by UID. Raises KubeError."""
    for each in items:
        about = each["metadata"]
        kind = context.kube.kind_of(each["apiVersion"], each["kind"])
        with suppress(Conflict):
            context.kube.delete(kind, about["name"], about.get("namespace"), uid=about["uid"])
