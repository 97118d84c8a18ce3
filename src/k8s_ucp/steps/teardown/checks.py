"""Checks before a topology is destroyed: protection, and data that would be lost."""

from __future__ import annotations

from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.kube import labels_of
from k8s_ucp.names import PROTECTED
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.backup.adopt_resources import is_adopting
from k8s_ucp.steps.teardown.abandonment import check_named, is_abandoned, known_of_core
from k8s_ucp.steps.teardown.owned_objects import (
    OwnedObjects,
    all_named,
    data_in_clusters,
    named,
)


def check_destroyable(context: StartContext) -> None:
    """Check that the topology may be destroyed. Raises UcpError."""
    core = context.topology.core_cluster
    if not context.core_responds():
        if core in context.teardown.abandon:
            return
        raise UcpError(
            f"{context.core_silence()}, but is needed to find what to delete",
            next=f"ucp start, then: ucp destroy; or, if it can't be repaired{_loss(context)}: "
            f"ucp destroy --abandon {core}",
        )
    found = OwnedObjects(context)
    _check_protection(found)
    _check_owned(found)
    if context.teardown.abandon:
        everything = (*found.local_clusters, *found.claims, *found.managed)
        check_named(context, (*everything, *context.applications()), (core,))
    if context.teardown.delete_data:
        return
    if inside := data_in_clusters(context):
        raise UcpError(
            f"databases run on clusters that would be deleted with their data: {some_of(inside)}",
            next="ucp destroy --delete-data",
        )
    info = PROVIDERS[context.topology.spec.core.provider]
    if found.claims and (info.removed_by_stop or info.adopts):
        raise UcpError(
            f"{core} would be deleted, and nothing would manage {some_of(all_named(found.claims))} "
            "after that",
            next="ucp destroy --delete-data",
        )


def _loss(context: StartContext) -> str:
    """What is lost with an abandoned core, as part of a sentence."""
    if found := known_of_core(context):
        return f", accept that nothing manages {some_of(found)} any more, nor ends what it costs"
    return f" (nothing of {context.topology.name} is known to be in a cloud)"


def _check_protection(found: OwnedObjects) -> None:
    """Raises UcpError if something is protected from deletion."""
    declared = found.context.topology.spec.environments
    protected = {each.name for each in declared if each.deletion_protection}
    items = [*found.local_clusters, *found.cloud_clusters, *found.networks]
    if found.context.teardown.delete_data:
        items += found.claims
    protected |= {
        each["metadata"]["name"] for each in items if labels_of(each).get(PROTECTED) == "true"
    }
    if protected:
        raise UcpError(
            f"protected from deletion: {', '.join(sorted(protected))}",
            next="remove deletionProtection from ucp.yaml, run ucp start, then: ucp destroy",
        )


def _check_owned(found: OwnedObjects) -> None:
    """Check that no resource is only observed so far: it would be left in its cloud.

    Raises UcpError unless all of these are abandoned.
    """
    context = found.context
    items = (*found.managed, *found.claims, *context.applications())
    observed = [
        named(each) for each in items if is_adopting(each) and not is_abandoned(context, each)
    ]
    if observed:
        raise UcpError(
            "a start was interrupted while it compared existing cloud resources with git; until it "
            "is finished they are only observed, and would be kept in their clouds: "
            f"{some_of(observed)}",
            next=(
                "ucp start, then: ucp destroy; or accept that what you name is kept and billed: "
                "ucp destroy --abandon NAME"
            ),
        )
