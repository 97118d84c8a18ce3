"""Kustomize patches that turn a cluster's bases into the objects of one environment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_ucp import names
from k8s_ucp.cluster_provider import ProviderInfo
from k8s_ucp.gitops.render.values.clouds import region_of, without_zone
from k8s_ucp.gitops.render.values.local_databases import NAMESPACE, local_databases
from k8s_ucp.gitops.render.values.permissions import taken_namespaces
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Environment, Topology

Operation = tuple[str, str, object]
"""(op, JSON pointer, value) of a JSON patch."""
Target = tuple[tuple[str, str], ...]
"""The target of a patch: (key, value) pairs of a kustomize selector."""
Patches = list[tuple[Target, list[Operation]]]

_SYNC_OPTIONS = "/metadata/annotations/argocd.argoproj.io~1sync-options"
_KEPT = "SkipDryRunOnMissingResource=true,Prune=false,Delete=false"
EVERYTHING: Target = (("kind", ".*"),)
_POLICIES = "/spec/managementPolicies"
_NO_DELETE = ("Observe", "Create", "Update", "LateInitialize")


@dataclass(frozen=True)
class ClusterOverlay:
    """The overlay that turns bases into the objects of one environment."""

    bases: tuple[str, ...] = ()
    region: str | None = None
    references: tuple[str, ...] = ()
    patches: Patches = field(default_factory=list)


def cluster_overlay(topology: Topology, environment: Environment) -> ClusterOverlay:
    """The overlay of an environment's cluster, for any provider."""
    cluster = environment.cluster
    managed = PROVIDERS[cluster.provider].managed
    if managed is None:
        return ClusterOverlay((cluster.provider,), patches=_local_patches(topology, environment))
    region = region_of(environment)
    patches = _managed_patches(environment, region)
    if environment.access == "scoped":
        owner = managed.kubeconfig_kind or ".*Cluster"
        patches.append((_kind(owner), _scope(topology, environment)))
    common = common_operations(environment, flagged=managed.has_protection)
    if common:
        patches.append((EVERYTHING, common))
    if managed.kubeconfig_kind and any(pointer == _POLICIES for _, pointer, _ in common):
        # This object only creates the kubeconfig, nothing in the cloud, and would not if it only
        # observed.
        patches.append((_kind(managed.kubeconfig_kind), [("remove", _POLICIES, None)]))
    if cluster.network:
        patches.append(_existing_network(cluster.network))
    return ClusterOverlay(bases_of(environment), region, managed.reference_paths, patches)


def bases_of(environment: Environment) -> tuple[str, ...]:
    """Folders below clusters/base that an environment's cluster consists of."""
    cluster = environment.cluster
    managed = PROVIDERS[cluster.provider].managed
    base = f"{cluster.provider}-autopilot" if cluster.autopilot else cluster.provider
    if managed is None or not managed.has_network:
        return (base,)
    network = "existing-network" if cluster.network else "network"
    return f"{cluster.provider}-{network}", base


def _kind(kind: str, name: str = "") -> Target:
    return (("kind", kind), ("name", name)) if name else (("kind", kind),)


def _managed_patches(environment: Environment, region: str) -> Patches:
    cluster, info = environment.cluster, PROVIDERS[environment.cluster.provider]
    values = {
        "version": (cluster.version or "").removeprefix("v") or None,
        "size": None if cluster.autopilot else cluster.size,
        "protection": environment.deletion_protection,
    }
    locations = _locations(region, cluster.zones)
    patches = _patches(info, locations | values, network=not cluster.network)
    assert info.managed
    if cluster.network:
        # The existing network's default subnetwork in that region is used instead.
        pointer = f"/spec/forProvider/{info.managed.own_subnetwork}"
        patches[0][1].append(("remove", pointer, None))
    return patches


def network_patches(provider: str, region: str) -> Patches:
    """Patches that place the network of a provider's clusters in a region."""
    return _patches(PROVIDERS[provider], _locations(region), cluster=False)


def _locations(region: str, zones: tuple[str, str] | None = None) -> dict[str, object]:
    """zones: letters of the zones of the subnets a and b, if they are others."""
    first, second = (f"{region}{each}" for each in zones or ("a", "b"))
    locations = {"region": region, "area": without_zone(region)}
    return {**locations, "zone-a": first, "zone-b": second}


def _patches(
    info: ProviderInfo, values: Mapping[str, object], *, cluster: bool = True, network: bool = True
) -> Patches:
    """Patches that write values into the provider's fields; missing values are skipped."""
    found: Patches = []
    for each in info.managed.fields if info.managed else ():
        operations: list[Operation] = [
            # A base contains a version only if the topology must set one.
            (
                "add" if key == "version" and not info.needs_version else "replace",
                f"/spec/forProvider/{name}",
                values[key],
            )
            for name, _, key in (field.partition("=") for field in each.fields.split())
            if values.get(key) is not None
        ]
        if operations and (network if each.network else cluster):
            found.append((_kind(each.kind, each.name), operations))
    return found


def common_operations(environment: Environment, *, flagged: bool) -> list[Operation]:
    """Operations for every object. flagged: the cloud has its own deletion protection."""
    policies: tuple[str, ...] = environment.management_policies
    if environment.deletion_protection and not flagged and "*" in policies:
        policies = _NO_DELETE
    operations: list[Operation] = []
    if policies != ("*",):
        operations += _list_operations(_POLICIES, policies)
    if environment.deletion_protection:
        operations.append(("add", _SYNC_OPTIONS, _KEPT))
    return operations


def _existing_network(name: str) -> tuple[Target, list[Operation]]:
    """Another owner's network is only observed, whatever the environment's policies are."""
    external_name = "/metadata/annotations/crossplane.io~1external-name"
    observed = _list_operations(_POLICIES, ("Observe",))
    return _kind("Network"), [("add", external_name, name), *observed]


def _list_operations(pointer: str, values: Iterable[str]) -> list[Operation]:
    """Values in a patch are scalars, so a list is added item by item."""
    return [("add", pointer, EMPTY_LIST), *(("add", f"{pointer}/-", each) for each in values)]


EMPTY_LIST: tuple[()] = ()
"""Represents [] in a patch."""


def _local_patches(topology: Topology, environment: Environment) -> Patches:
    """Patches of an environment's LocalCluster."""
    operations: list[Operation] = []
    if environment.cluster.version:
        operations.append(("add", "/spec/version", environment.cluster.version))
    if environment.cluster.context:
        operations.append(("add", "/spec/context", environment.cluster.context))
    if environment.cluster.nodes:
        operations.append(("add", "/spec/nodes", environment.cluster.nodes))
    if environment.access == "scoped":
        operations += _scope(topology, environment)
    if environment.deletion_protection:
        operations.append(("add", _SYNC_OPTIONS, _KEPT))
    return [(_kind("LocalCluster"), operations)] if operations else []


def _scope(topology: Topology, environment: Environment) -> list[Operation]:
    """Annotate the owner of a kubeconfig with the namespaces that a scoped Argo CD may write to."""
    databases = [NAMESPACE] if local_databases(topology, environment) else []
    operations = [_annotate(names.NAMESPACES, [*taken_namespaces(topology), *databases])]
    if teams := [each.namespace for each in topology.spec.teams]:
        operations.append(_annotate(names.TEAM_NAMESPACES, teams))
    return operations


def _annotate(name: str, values: Iterable[str]) -> Operation:
    return "add", f"/metadata/annotations/{name.replace('/', '~1')}", ",".join(values)
