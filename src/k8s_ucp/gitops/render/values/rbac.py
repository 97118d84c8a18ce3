"""Roles for users of Crossplane if its RBAC manager isn't installed. Pure."""

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
            # Credentials of providers and connection Secrets; namespaces for teams.
            (("",), ("secrets", "namespaces"), _ALL),
            # Admins may grant their own permissions to others, and read roles for that.
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
"""(role, rules) as in Crossplane's own roles, with rules for the kinds of this project."""


def wanted(topology: Topology, in_pods: bool) -> bool:
    """Whether to render these roles: with the RBAC manager, Crossplane's chart has them."""
    return not (in_pods and topology.spec.crossplane.rbac_manager)
