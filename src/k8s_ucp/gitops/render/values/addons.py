"""Platform add-ons: charts pinned by version, and the clusters that they run on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k8s_ucp.gitops.render.values.clouds import CLOUD_OF, SECRETS
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import in_pods

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


@dataclass(frozen=True)
class Addon:
    """One chart. repository: without oci://, as Argo CD writes it, when oci is set."""

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
    """On simulated app clusters `ucp start` runs it as a host process instead."""
    switch: str = ""
    """Key of spec.addons that turns it on; ingress controllers have one in common."""
    wave: int = 0
    oci: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    """(name, value) of what differs between app clusters; {topology}, {domain} and {environment}
    are filled in."""


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
"""Names of the IngressClasses that the add-ons bring; `gateway` makes traefik's the default."""


@dataclass(frozen=True)
class Gateway:
    """Where routes of apps are attached: made by traefik's chart."""

    name: str = "traefik-gateway"
    namespace: str = _TRAEFIK.namespace
    listener: str = "web"


def gateway(topology: Topology) -> Gateway | None:
    """The Gateway of app clusters, where routes take the place of Ingresses."""
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
    # Each cluster keeps its own records: with one owner they would delete each other's.
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
    # Each cluster sees its own backups only: a restore in prod must not offer those of stage.
    parameters=(("configuration.backupStorageLocation[0].prefix", "{environment}"),),
)
ALL = (
    _TRAEFIK,
    _NGINX,
    _GATEWAY,
    _PROMETHEUS,
    *_LOKI,
    _EXTERNAL_DNS,
    _ARGO_ROLLOUTS,
    _VELERO,
)

CORE = "core"
"""In the place of an environment's name; none is called like that."""
_DNS = {"gcp": "google", "aws": "aws", "digitalocean": "digitalocean"}
"""Clouds whose DNS external-dns gets into with the credential that Crossplane has."""


@dataclass(frozen=True)
class Bucket:
    """Where Velero keeps backups: made by a person, so that no commit deletes it."""

    name: str
    provider: str
    plugin: str


VELERO_SECRET = "velero-credentials"  # noqa: S105 (a name)
# v1.14.x goes with Velero v1.18.x, by the plugins' own tables (looked at for v1.14.2).
_PLUGINS = {
    "gke": ("gcp", "velero/velero-plugin-for-gcp:v1.14.0"),
    "eks": ("aws", "velero/velero-plugin-for-aws:v1.14.3"),
}


def chosen(topology: Topology) -> list[Addon]:
    """Add-ons that the topology switches on."""
    wanted = topology.spec.addons
    switched = [each for each in ALL if each.switch and getattr(wanted, each.switch)]
    return [*_INGRESS[wanted.ingress], *switched]


def parameters(topology: Topology, addon: Addon, environment: str) -> list[tuple[str, str]]:
    """What differs between clusters, for one of them. environment: may be a template, or CORE."""
    names = {"topology": topology.name, "domain": topology.spec.domain, "environment": environment}
    return [(name, value.format(**names)) for name, value in addon.parameters]


def on_core(topology: Topology, addon: Addon) -> bool:
    """It runs on the core cluster. An embedded core runs no pods, so nothing does there."""
    return addon.core and in_pods(topology)


def leads_to_argocd(topology: Topology) -> bool:
    """The core's ingress controller leads to Argo CD.

    Only where the way in is this machine's loopback: a cloud's load balancer would show the page
    for logging in to everybody, without TLS.
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
    """Providers that it has values for: of app clusters, and of the core."""
    core = [topology.spec.core.provider] if on_core(topology, addon) else []
    return sorted({*environment_providers(topology, addon), *core})


def repositories(topology: Topology) -> list[str]:
    """Where the charts of the chosen add-ons come from."""
    used = [each for each in chosen(topology) if targets(topology, each)]
    return sorted({each.repository for each in used})


def password_namespaces(topology: Topology) -> tuple[str, ...]:
    """Namespaces of the core cluster whose Secrets may ask the reconciler for a password."""
    grafana = topology.spec.addons.prometheus and on_core(topology, _PROMETHEUS)
    return ("ucp-clusters", _PROMETHEUS.namespace) if grafana else ("ucp-clusters",)


def dns_provider(topology: Topology, provider: str) -> tuple[str, str]:
    """(external-dns's name of the cloud that holds the records, Secret with its credential).

    That is the cluster's own cloud, else the first one with a credential; `inmemory` without any.
    """
    cloud = CLOUD_OF.get(provider)
    if cloud not in _DNS:
        sources = topology.spec.credentials
        cloud = next((each for each in _DNS if getattr(sources, each) is not None), None)
    return (_DNS[cloud], SECRETS[cloud]) if cloud else ("inmemory", "")


def bucket(topology: Topology, provider: str) -> Bucket | None:
    """Where Velero keeps the backups of clusters of a provider."""
    if provider not in _PLUGINS:
        return None
    name, plugin = _PLUGINS[provider]
    return Bucket(f"{topology.name}-backups", name, plugin)


def values(topology: Topology, provider: str) -> dict[str, Any]:
    """What the values of charts depend on."""
    name, secret = dns_provider(topology, provider)
    gcp = topology.spec.credentials.gcp
    return {
        "provider": provider,
        "info": PROVIDERS[provider],
        "in_cloud": provider in CLOUD_OF,
        "gateway": gateway(topology),
        "loki": topology.spec.addons.loki,
        "dns": name,
        "dns_secret": secret,
        "project": gcp.project if gcp else None,
        "bucket": bucket(topology, provider),
        "velero_secret": VELERO_SECRET,
    }
