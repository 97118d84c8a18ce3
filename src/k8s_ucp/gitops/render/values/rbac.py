"""What people may do with Crossplane where its RBAC manager doesn't say so. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

Rule = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""(API groups, resources, verbs)."""

_READ = ("get", "list", "watch")
_ALL = ("*",)
_DEFINITIONS = "apiextensions.crossplane.io"
_CROSSPLANE = (_DEFINITIONS, "ops.crossplane.io", "pkg.crossplane.io", "protection.crossplane.io")
_OURS = "k8s-ucp.io"
_EVENTS: Rule = (("",), ("events",), _READ)
_NAMESPACES: Rule = (("",), ("namespaces",), _READ)

STEPS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    (
        "admin",
        (
            _EVENTS,
            ((*_CROSSPLANE, _OURS), _ALL, _ALL),
            # Credentials of providers, and connections; room for teams.
            (("",), ("secrets", "namespaces"), _ALL),
            # They may pass on what they have, and see what that is.
            (("rbac.authorization.k8s.io",), ("clusterroles", "roles"), _READ),
            (("rbac.authorization.k8s.io",), ("clusterrolebindings", "rolebindings"), _ALL),
            (("apiextensions.k8s.io",), ("customresourcedefinitions",), _READ),
        ),
    ),
    (
        "edit",
        (_EVENTS, _NAMESPACES, ((*_CROSSPLANE, _OURS), _ALL, _ALL), (("",), ("secrets",), _ALL)),
    ),
    ("view", (_EVENTS, _NAMESPACES, ((*_CROSSPLANE, _OURS), _ALL, _READ))),
    ("browse", (_EVENTS, ((_DEFINITIONS,), _ALL, _READ))),
)
"""(step, its rules), as Crossplane's own roles have them, and for the kinds of this project."""


def wanted(topology: Topology, in_pods: bool) -> bool:
    """Crossplane's chart has these roles together with the RBAC manager."""
    return not (in_pods and topology.spec.crossplane.rbac_manager)
