"""What a managed resource allows its provider to do in the cloud. Pure.

https://docs.crossplane.io/latest/managed-resources/managed-resources/#managementpolicies
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.names import PAUSED

ACTIONS = ("Observe", "Create", "Update", "Delete", "LateInitialize")

_SUPPORTED = {
    frozenset(ACTIONS),
    frozenset(ACTIONS) - {"LateInitialize"},
    frozenset(ACTIONS) - {"Delete"},
    frozenset(ACTIONS) - {"Delete", "LateInitialize"},
    frozenset(ACTIONS) - {"Update"},
    frozenset(ACTIONS) - {"Update", "LateInitialize"},
    frozenset(ACTIONS) - {"Update", "Delete"},
    frozenset({"Observe", "Create"}),
    frozenset({"Observe", "Update"}),
    frozenset({"Observe", "Update", "LateInitialize"}),
    frozenset({"Observe", "Delete"}),
    frozenset({"Observe", "Update", "Delete"}),
    frozenset({"Observe"}),
    frozenset({"Observe", "LateInitialize"}),
}
"""Supported sets: without Observe, no other action is possible."""


@dataclass(frozen=True)
class Policies:
    """Permitted actions. paused: none, not even Observe."""

    actions: frozenset[str]
    paused: bool = False

    @property
    def supported(self) -> bool:
        """Whether the set of actions is supported."""
        return self.actions in _SUPPORTED

    @property
    def only_observed(self) -> bool:
        """Whether nothing in the cloud may be changed."""
        return not self.actions & {"Create", "Update", "Delete"}

    def may(self, action: str) -> bool:
        """Whether one of ACTIONS is permitted."""
        return action in self.actions


def policies_of(item: Mapping[str, Any]) -> Policies:
    """The policies of a managed resource. `deletionPolicy: Orphan` removes Delete."""
    spec = item.get("spec") or {}
    listed = spec.get("managementPolicies")
    named = frozenset(["*"] if listed is None else listed)
    actions = frozenset(ACTIONS) if "*" in named else named
    if spec.get("deletionPolicy") == "Orphan":
        actions -= {"Delete"}
    annotations = item["metadata"].get("annotations") or {}
    return Policies(actions, paused=annotations.get(PAUSED) == "true" or not named)
