"""A topology as steps, checks and commands see it, and what the steps of one run share."""

from k8s_ucp.context.start_context import (
    AWAY_SECONDS,
    AdoptionResult,
    PublishOptions,
    StartContext,
    TeardownState,
    UpgradeState,
    await_ready,
    persistent,
    planned_cluster,
)
from k8s_ucp.context.topology_view import TopologyView

__all__ = [
    "AWAY_SECONDS",
    "AdoptionResult",
    "PublishOptions",
    "StartContext",
    "TeardownState",
    "TopologyView",
    "UpgradeState",
    "await_ready",
    "persistent",
    "planned_cluster",
]
