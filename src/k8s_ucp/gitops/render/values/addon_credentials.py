"""Credentials that add-ons need on app clusters, and which of them no mirror provides. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.gitops.render.values import addons

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Mirror, Topology


def secret_of(topology: Topology, addon: addons.Addon, environment: Environment) -> str:
    """The Secret that an add-on needs in its namespace on an app cluster; "" if none."""
    provider = environment.cluster.provider
    if provider not in addons.environment_providers(topology, addon):
        return ""
    if addon.name == "external-dns":
        cloud = addons.dns_cloud(topology, provider)
        return cloud.secret if cloud else ""
    if addon.name == "velero":
        return addons.VELERO_SECRET if addons.bucket_cloud(provider) else ""
    return ""


def find_missing(topology: Topology) -> Iterator[str]:
    """A message for each add-on whose credential no mirror of the topology provides."""
    for addon in addons.chosen(topology):
        missing: dict[str, list[str]] = {}
        for environment in topology.spec.environments:
            secret = secret_of(topology, addon, environment)
            mirrors = topology.spec.mirrors
            if secret and not any(_brings(m, addon, secret, environment) for m in mirrors):
                missing.setdefault(secret, []).append(environment.name)
        for secret, names in sorted(missing.items()):
            yield (
                f"{addon.name} on {', '.join(names)} needs the Secret {secret} in the "
                f"namespace {addon.namespace}: provide it by a mirror "
                "(docs/platform.md, Add-ons)"
            )


def _brings(mirror: Mirror, addon: addons.Addon, secret: str, environment: Environment) -> bool:
    source, targets = mirror.source, mirror.targets
    if source.kind != "secret" or targets.namespace != addon.namespace:
        return False
    if targets.environments and environment.name not in targets.environments:
        return False
    # What a label selector matches isn't known in advance.
    return (targets.name or source.name or secret) == secret
