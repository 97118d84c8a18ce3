"""Requires --abandon for an existing core that no longer responds."""

from __future__ import annotations

from k8s_ucp.clusters.existing.provider import make
from k8s_ucp.context import StartContext


def is_given_up(context: StartContext) -> bool:
    """Whether --abandon names an existing core that does not respond, by any known kubeconfig."""
    name, abandoned = context.topology.core_cluster, context.teardown.abandon
    if name not in abandoned or not context.core_is_adopted() or context.core_responds():
        return False
    return not make(context.workspace, context.topology).state(name).running


def advice_of_silence(context: StartContext) -> str:
    """What to type about an existing core that does not respond. Pure."""
    command = "ucp destroy" if context.teardown.destroys else "ucp stop"
    return (
        f"fix the cause, then: {command}; or, if the cluster is gone for good, accept that what "
        f"it has in clouds is kept and billed: {command} --abandon {context.topology.core_cluster}"
    )
