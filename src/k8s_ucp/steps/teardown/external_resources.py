"""Finds what app clusters have created outside: load balancers, volumes, DNS records.

Their own controllers create these, so there are no managed resources for them. They are deleted
with the Applications while the clusters exist; a teardown waits for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import PERSISTENT_VOLUME, SERVICE, Kube, Object, mapping_in, mappings_in
from k8s_ucp.names import PROVIDER
from k8s_ucp.providers import DEFAULT, PROVIDERS
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.kubeconfig import read
from k8s_ucp.reconciler.access.kubeconfig_verification import proven
from k8s_ucp.reconciler.access.owners import source_in
from k8s_ucp.reconciler.access.sources import kubeconfig_in
from k8s_ucp.reconciler.draining import holders
from k8s_ucp.reconciler.registration.forced_deregistration import registered
from k8s_ucp.steps.teardown.cloud_record import DNS_RECORD, UNSEEN, RecordedResource
from k8s_ucp.topology.placement import is_simulated

_CALLED = {"Service": "LoadBalancer"}


def outside_of(context: StartContext) -> list[RecordedResource]:
    """Outside resources of every registered cluster that ucp deletes.

    Includes clusters that only the repositories declare. A silent cluster counts as one unknown
    resource, but as none if it is simulated. Raises KubeError for the core.
    """
    return [
        found
        for _, each in sorted(registered(context.kube).items())
        if not PROVIDERS[_provider(context, each)].adopts
        for found in _outside(context, each)
    ]


def still_outside(
    context: StartContext, recorded: Iterable[RecordedResource]
) -> tuple[list[RecordedResource], set[str]]:
    """(those that clusters still have, UIDs of those they no longer have); none of silent ones."""
    by_cluster: dict[str, list[RecordedResource]] = {}
    for each in recorded:
        if each.cluster and each.kind not in (DNS_RECORD, UNSEEN):
            by_cluster.setdefault(each.cluster, []).append(each)
    left: list[RecordedResource] = []
    gone: set[str] = set()
    for cluster, known in sorted(by_cluster.items()):
        with suppress(UcpError), closing(_client(context, cluster)) as kube:
            items = holders(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))
            uids = {str(each["metadata"].get("uid", "")) for each in items}
            left += [each for each in known if each.uid in uids]
            gone |= {each.uid for each in known} - uids
    return left, gone


def responding_clusters(context: StartContext, found: Iterable[RecordedResource]) -> set[str]:
    """Names of registered clusters that responded. found: result of `outside_of`."""
    return {*registered(context.kube)} - {each.cluster for each in found if each.kind == UNSEEN}


def _outside(context: StartContext, registration: Registration) -> Iterator[RecordedResource]:
    cluster = registration.cluster
    try:
        with closing(_client(context, cluster)) as kube:
            items = holders(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))
            hosts = _hosts(context, kube)
    except UcpError:
        if not is_simulated(context.topology, _provider(context, registration)):
            what, uid = "load balancers and volumes", f"{UNSEEN}/{registration.uid}"
            yield RecordedResource(UNSEEN, "", what, uid, "", cluster=cluster)
        return
    for each in items:
        kind = _CALLED.get(str(each["kind"]), str(each["kind"]))
        found = RecordedResource.of(each)
        yield replace(
            found, kind=kind, external_name=_address(each), parameters={}, cluster=cluster
        )
    for host in hosts:
        yield RecordedResource(DNS_RECORD, "", host, f"{DNS_RECORD}/{host}", host, cluster=cluster)


def _client(context: StartContext, cluster: str) -> Kube:
    """Client of an app cluster. Raises UcpError."""
    for provider in context.providers.values():
        if cluster in provider.names():
            return Kube(provider.kubeconfig(cluster))
    return Kube(_of_cloud(context, cluster))


def _of_cloud(context: StartContext, cluster: str) -> dict[str, Any]:
    """The kubeconfig of a cloud's cluster, whose owner vouches for the server.

    Another server could claim that nothing is left, or get the credentials. Raises UcpError.
    """
    secret = context.cloud_secret(cluster.removeprefix(f"{context.topology.name}-"))
    written = kubeconfig_in(secret) if secret else b""
    source = source_in(context.kube, secret) if secret else None
    if not written or source is None:
        raise UcpError(f"the cluster {cluster} has no kubeconfig")
    found = proven(source, read(written))
    return {
        "clusters": [{"name": cluster, "cluster": dict(found.cluster)}],
        "users": [{"name": cluster, "user": dict(found.user)}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }


def _hosts(context: StartContext, kube: Kube) -> list[str]:
    """Hosts of Ingresses, if the add-on creates DNS records for them. Raises KubeError."""
    if not context.topology.spec.addons.external_dns:
        return []
    items = kube.list_all(kube.kind_of("networking.k8s.io/v1", "Ingress"))
    rules = [rule for each in items for rule in mappings_in(each, "spec", "rules")]
    return sorted({str(each["host"]) for each in rules if each.get("host")})


def _address(item: Object) -> str:
    """Address of a load balancer, or a volume's name in its cloud."""
    given = [*mappings_in(item, "status", "loadBalancer", "ingress"), {}][0]
    volume = mapping_in(item, "spec", "csi").get("volumeHandle")
    return str(volume or given.get("hostname") or given.get("ip") or "")


def _provider(context: StartContext, registration: Registration) -> str:
    declared = {
        context.topology.app_cluster(each.name): each.cluster.provider
        for each in context.topology.spec.environments
    }
    named = registration.labels.get(PROVIDER, "")
    return declared.get(registration.cluster) or (named if named in PROVIDERS else DEFAULT)
