"""Platform add-ons: charts with pinned versions, and the clusters that they run on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k8s_ucp.clouds import CLOUDS, CloudInfo
from k8s_ucp.gitops.render.values.clouds import project_of
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import in_pods

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


@dataclass(frozen=True)
class Addon:
    """An add-on's chart. repository: for OCI without oci://, as in Argo CD's Applications."""

    name: str
    chart: str
    repository: str
    version: str
    namespace: str
    core: bool = False
    """It runs on the core cluster."""
    environments: bool = False
    """It runs on app clusters."""
    by_host: bool = False
    """On simulated app clusters, `ucp start` runs it as a host process instead."""
    switch: str = ""
    """Key of spec.addons that enables it; ingress controllers share one."""
    wave: int = 0
    oci: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    """(name, value) of parameters that differ between app clusters.

    The placeholders {topology}, {domain} and {environment} are replaced.
    """


_TRAEFIK = Addon(
    "traefik",
    "traefik",
    "https://traefik.github.io/charts",
    "41.3.0",
    "traefik",
    core=True,
    environments=True,
    wave=-4,
)
_NGINX = Addon(
    "ingress-nginx",
    "ingress-nginx",
    "https://kubernetes.github.io/ingress-nginx",
    "4.15.1",
    "ingress-nginx",
    core=True,
    environments=True,
    wave=-4,
)
_GATEWAY = Addon(
    "gateway-api",
    "gateway-crds-helm",
    "docker.io/envoyproxy",
    "v1.9.0",
    "traefik",
    core=True,
    environments=True,
    wave=-5,
    oci=True,
)
_INGRESS = {
    None: (),
    "none": (),
    "traefik": (_TRAEFIK,),
    "nginx": (_NGINX,),
    "gateway": (_GATEWAY, _TRAEFIK),
}
INGRESS_CLASSES = {"traefik": "traefik", "nginx": "nginx"}
"""IngressClasses of the add-ons; with `gateway`, traefik's is the default."""


@dataclass(frozen=True)
class Gateway:
    """The Gateway that routes of apps attach to, created by traefik's chart."""

    name: str = "traefik-gateway"
    namespace: str = _TRAEFIK.namespace
    listener: str = "web"


def gateway(topology: Topology) -> Gateway | None:
    """The Gateway of app clusters if routes replace Ingresses, else None."""
    return Gateway() if topology.spec.addons.ingress == "gateway" else None


_PROMETHEUS = Addon(
    "prometheus",
    "kube-prometheus-stack",
    "https://prometheus-community.github.io/helm-charts",
    "88.5.3",
    "monitoring",
    switch="prometheus",
    core=True,
    wave=2,
)
_LOKI = (
    Addon(
        "loki",
        "loki",
        "https://grafana-community.github.io/helm-charts",
        "18.11.0",
        "monitoring",
        switch="loki",
        core=True,
        wave=3,
    ),
    Addon(
        "alloy",
        "alloy",
        "https://grafana.github.io/helm-charts",
        "1.11.1",
        "monitoring",
        switch="loki",
        core=True,
        wave=3,
    ),
)
_EXTERNAL_DNS = Addon(
    "external-dns",
    "external-dns",
    "https://kubernetes-sigs.github.io/external-dns",
    "1.21.1",
    "external-dns",
    switch="external_dns",
    environments=True,
    # An owner id per cluster: with a shared one, clusters would delete each other's records.
    parameters=(
        ("txtOwnerId", "ucp-{topology}-{environment}"),
        ("domainFilters[0]", "{environment}.{domain}"),
    ),
)
_ARGO_ROLLOUTS = Addon(
    "argo-rollouts",
    "argo-rollouts",
    "https://argoproj.github.io/argo-helm",
    "2.41.0",
    "argo-rollouts",
    switch="argo_rollouts",
    environments=True,
    by_host=True,
)
_VELERO = Addon(
    "velero",
    "velero",
    "https://vmware-tanzu.github.io/helm-charts",
    "12.1.0",
    "velero",
    switch="velero",
    core=True,
    environments=True,
    # A prefix per cluster: a restore in prod must not offer the backups of stage.
    parameters=(("configuration.backupStorageLocation[0].prefix", "{environment}"),),
)
ALL = (_TRAEFIK, _NGINX, _GATEWAY, _PROMETHEUS, *_LOKI, _EXTERNAL_DNS, _ARGO_ROLLOUTS, _VELERO)

CORE = "core"
"""Used in place of an environment's name; no environment can have this name."""


VELERO_SECRET = "velero-credentials"  # noqa: S105 (a name)


def chosen(topology: Topology) -> list[Addon]:
    """Add-ons that the topology enables."""
    wanted = topology.spec.addons
    switched = [each for each in ALL if each.switch and getattr(wanted, each.switch)]
    return [*_INGRESS[wanted.ingress], *switched]


def parameters(topology: Topology, addon: Addon, environment: str) -> list[tuple[str, str]]:
    """Parameters for one cluster. environment: its name, a template, or CORE."""
    names = {"topology": topology.name, "domain": topology.spec.domain, "environment": environment}
    return [(name, value.format(**names)) for name, value in addon.parameters]


def on_core(topology: Topology, addon: Addon) -> bool:
    """Whether an add-on runs on the core cluster; an embedded core runs no pods, so none."""
    return addon.core and in_pods(topology)


def leads_to_argocd(topology: Topology) -> bool:
    """The core cluster's ingress controller exposes Argo CD.

    Only if traffic enters through this machine's loopback interface: a cloud load balancer would
    expose the login page to everybody, without TLS.
    """
    here = PROVIDERS[topology.spec.core.provider].takes_traffic
    return here and bool(_INGRESS[topology.spec.addons.ingress])


def environment_providers(topology: Topology, addon: Addon) -> list[str]:
    """Providers of the app clusters that it runs on."""
    if not addon.environments:
        return []
    used = {each.cluster.provider for each in topology.spec.environments}
    return sorted(each for each in used if not (addon.by_host and PROVIDERS[each].simulated))


def targets(topology: Topology, addon: Addon) -> list[str]:
    """Providers for which its values are needed: of app clusters, and of the core cluster."""
    core = [topology.spec.core.provider] if on_core(topology, addon) else []
    return sorted({*environment_providers(topology, addon), *core})


def repositories(topology: Topology) -> list[str]:
    """Repositories of the enabled add-ons' charts."""
    used = [each for each in chosen(topology) if targets(topology, each)]
    return sorted({each.repository for each in used})


def password_namespaces(topology: Topology) -> tuple[str, ...]:
    """Namespaces of the core cluster whose Secrets may request a password from the reconciler."""
    grafana = topology.spec.addons.prometheus and on_core(topology, _PROMETHEUS)
    # Teams claim databases in their own namespaces.
    teams = sorted(each.namespace for each in topology.spec.teams)
    return (CLUSTERS_NAMESPACE, *((_PROMETHEUS.namespace,) if grafana else ()), *teams)


def dns_cloud(topology: Topology, provider: str) -> CloudInfo | None:
    """The cloud with the DNS records: the cluster's own, else the first one with a credential."""
    sources, own = topology.spec.credentials, PROVIDERS[provider].cloud
    able = [each for each in CLOUDS.values() if each.dns]
    same = [each for each in able if each.name == own]
    having = [each for each in able if getattr(sources, each.name, None) is not None]
    return next(iter(same + having), None)


def bucket_cloud(provider: str) -> CloudInfo | None:
    """The cloud with Velero's backup bucket, which users create, so that no commit deletes it."""
    cloud = CLOUDS.get(PROVIDERS[provider].cloud)
    return cloud if cloud and cloud.velero_plugin else None


def values(topology: Topology, provider: str) -> dict[str, Any]:
    """Template values for the add-ons' charts."""
    cloud = dns_cloud(topology, provider)
    return {
        "provider": provider,
        "info": PROVIDERS[provider],
        "in_cloud": bool(PROVIDERS[provider].cloud),
        "gateway": gateway(topology),
        "loki": topology.spec.addons.loki,
        "dns": cloud.dns if cloud else "inmemory",
        "dns_secret": cloud.secret if cloud else "",
        "project": project_of(topology, cloud.name) if cloud else None,
        "bucket": bucket_cloud(provider),
        "velero_secret": VELERO_SECRET,
    }
