"""Guard rails: which policies apply in which environment, and how. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from k8s_ucp.gitops.render.values.permissions import namespaces_of
from k8s_ucp.topology.parts import Policy
from k8s_ucp.topology.rules.names import PLATFORM_NAMESPACES

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

ALL: tuple[str, ...] = get_args(Policy)
"""All policies, named like their files below policies/base."""
HOST_ANNOTATIONS = (
    "nginx.ingress.kubernetes.io/server-alias",
    "external-dns.alpha.kubernetes.io/hostname",
    "external-dns.alpha.kubernetes.io/internal-hostname",
)
"""Annotations with hosts that get traffic or DNS records."""
HOST_PATTERN = r"(?i)\bHost(?:SNI)?Regexp[(]\s*[`\x22][^`\x22]*[`\x22]"
"""Matches a matcher of traefik for hosts, with its regular expression in quotes."""


def levels(topology: Topology) -> dict[str, str]:
    """{environment: warn or deny}, in the order of the environments."""
    wanted = topology.spec.guard_rails.__pydantic_extra__ or {}
    names = [each.name for each in topology.spec.environments]
    return {name: wanted[name] for name in names if name in wanted}


def policies(topology: Topology) -> list[str]:
    """Policies that are not disabled."""
    return [each for each in ALL if each not in topology.spec.guard_rails.off]


def platform_namespaces() -> list[str]:
    """Namespaces that policies exempt, independent of the enabled add-ons."""
    return sorted(PLATFORM_NAMESPACES)


def host_owners(topology: Topology) -> dict[str, tuple[str, ...]]:
    """{host of ucp.yaml: namespaces that may use it}, for environments with guard rails.

    If `checks.ignore` allows an app to share a host, its namespaces may use the others' hosts too.
    """
    spec = topology.spec
    sharing = {each.app for each in spec.checks.ignore if each.rule == "host-taken"}
    shared = [name for app in spec.apps if app.name in sharing for name in namespaces_of(app)]
    return {
        f"{host}.{environment}.{spec.domain}": tuple(dict.fromkeys([*namespaces_of(app), *shared]))
        for environment in levels(topology)
        for app in spec.apps
        for host in app.hosts
    }


def host_owners_expression(topology: Topology) -> str:
    """`host_owners` in CEL. Hosts and namespaces are DNS names and need no escaping."""
    owners = (f"'{host}': {list(names)}" for host, names in host_owners(topology).items())
    return "{" + ", ".join(owners) + "}"
