"""What app clusters have made outside of themselves: load balancers, volumes, DNS records.

Their own controllers make these, so no managed resource stands for them. They go with the
Applications while the cluster is there to take them away; a teardown waits for that.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

from k8s_ucp import yaml_io
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import PERSISTENT_VOLUME, SECRET, SERVICE, Kube, Object
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.reconciler.draining import holders
from k8s_ucp.reconciler.registration.forced_deregistration import registered
from k8s_ucp.steps.teardown.cloud_record import RecordedResource
from k8s_ucp.topology.placement import is_simulated

DNS_RECORD = "DNSRecord"
UNSEEN = "Unseen"
"""Kind of what a cluster may have that doesn't tell."""
_CALLED = {"Service": "LoadBalancer"}


def outside_of(context: StartContext) -> list[RecordedResource]:
    """Of every registered cluster that ucp deletes; one that is silent is a line of its own.

    Nothing of silent clusters where all is simulated. Raises KubeError of the core.
    """
    there = registered(context.kube)
    return [
        found
        for each in context.topology.spec.environments
        if (cluster := context.topology.app_cluster(each.name)) in there
        and not PROVIDERS[each.cluster.provider].adopts
        for found in _outside(context, each.name, cluster)
    ]


def still_outside(
    context: StartContext, recorded: Iterable[RecordedResource]
) -> tuple[list[RecordedResource], set[str]]:
    """(what a cluster still has of these, UIDs of what it has no more); of silent ones neither."""
    by_cluster: dict[str, list[RecordedResource]] = {}
    for each in recorded:
        if each.cluster and each.kind not in (DNS_RECORD, UNSEEN):
            by_cluster.setdefault(each.cluster, []).append(each)
    left: list[RecordedResource] = []
    gone: set[str] = set()
    for environment in context.topology.spec.environments:
        cluster = context.topology.app_cluster(environment.name)
        if cluster not in by_cluster:
            continue
        with suppress(UcpError), closing(_client(context, environment.name, cluster)) as kube:
            items = holders(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))
            uids = {each["metadata"]["uid"] for each in items}
            left += [each for each in by_cluster[cluster] if each.uid in uids]
            gone |= {each.uid for each in by_cluster[cluster]} - uids
    return left, gone


def _outside(context: StartContext, environment: str, cluster: str) -> Iterator[RecordedResource]:
    try:
        with closing(_client(context, environment, cluster)) as kube:
            items = holders(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))
            hosts = _hosts(context, kube)
    except UcpError:
        provider = _provider(context, environment)
        if not is_simulated(context.topology, provider):
            what = "load balancers and volumes"
            yield RecordedResource(UNSEEN, "", what, f"{UNSEEN}/{cluster}", "", cluster=cluster)
        return
    for each in items:
        kind = _CALLED.get(str(each["kind"]), str(each["kind"]))
        found = RecordedResource.of(each)
        yield replace(
            found, kind=kind, external_name=_address(each), parameters={}, cluster=cluster
        )
    for host in hosts:
        yield RecordedResource(DNS_RECORD, "", host, f"{DNS_RECORD}/{host}", host, cluster=cluster)


def _client(context: StartContext, environment: str, cluster: str) -> Kube:
    """Raises UcpError."""
    for maker in context.providers.values():
        if cluster in maker.names():
            return Kube(maker.kubeconfig(cluster))
    # What Crossplane's provider wrote.
    name = f"{context.topology.name}-kubeconfig-{environment}"
    secret = context.kube.find(SECRET, name, CLUSTERS_NAMESPACE)
    written = (secret or {}).get("data", {}).get("kubeconfig")
    if not written:
        raise UcpError(f"there is no kubeconfig of {cluster}")
    return Kube(yaml_io.load(base64.b64decode(written).decode()))


def _hosts(context: StartContext, kube: Kube) -> list[str]:
    """Of Ingresses, where the add-on makes DNS records of them. Raises KubeError."""
    if not context.topology.spec.addons.external_dns:
        return []
    items = kube.list_all(kube.kind_of("networking.k8s.io/v1", "Ingress"))
    rules = [rule for each in items for rule in (each.get("spec") or {}).get("rules") or ()]
    return sorted({each["host"] for each in rules if each.get("host")})


def _address(item: Object) -> str:
    """Of a load balancer; a volume's name in its cloud."""
    given = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [{}]
    volume = ((item.get("spec") or {}).get("csi") or {}).get("volumeHandle")
    return str(volume or given[0].get("hostname") or given[0].get("ip") or "")


def _provider(context: StartContext, environment: str) -> str:
    found = {each.name: each.cluster.provider for each in context.topology.spec.environments}
    return found[environment]
