"""Access to a topology that exists already: its folders, clusters and components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from k8s_ucp.cluster_provider import HTTP, ClusterProvider
from k8s_ucp.clusters import local
from k8s_ucp.clusters.ports import Ports, default_registry, recorded
from k8s_ucp.clusters.user_kubeconfig import users_files
from k8s_ucp.components import argocd, cloud, composition_functions, crossplane, reconciler
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.cloud import CloudComponent
from k8s_ucp.components.component import Check, Component, Health, HostComponent, combine, probe
from k8s_ucp.components.composition_functions import CompositionFunctions
from k8s_ucp.components.crossplane import Crossplane
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.components.pods import argocd_pods, pod_components
from k8s_ucp.components.pods.component import PodComponent
from k8s_ucp.components.reconciler import ReconcilerComponent
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.gitops.manifests.sources import transports, uses_ssh
from k8s_ucp.gitops.render.values.addons import leads_to_argocd, password_namespaces
from k8s_ucp.kube import APPLICATION, SECRET, Kube, Object
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.names import ARGOCD_NAMESPACE, CLUSTERS_NAMESPACE
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.runtime.settings import CONTROLLERS, ON_MACHINES
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.topology.parts import CorePorts
from k8s_ucp.topology.placement import core_is_existing, in_pods
from k8s_ucp.topology.values import in_seconds
from k8s_ucp.workspace import GitopsFolder, StateFolder, Workspace
from k8s_ucp.workspace.identity import advice_for_copy

PORTS = (*argocd.PORTS, *crossplane.PORTS, *reconciler.PORTS)
SIMULATED_PORTS = (*cloud.PORTS, *composition_functions.PORTS)
"""With a simulated cloud: composite resources for it are composed on this machine."""
POD_PORTS = (*argocd_pods.PORTS, *reconciler.PORTS)
"""Ports of this machine if the components run in pods."""


@dataclass
class TopologyView:
    """A topology and its visible state: sufficient for status, doctor, logs, get and open."""

    workspace: Workspace
    topology: Topology
    toolbox: Toolbox = field(default_factory=lambda: Toolbox({}, {}), kw_only=True)
    """The pinned programs, after install-tools has run; read-only use needs none."""

    @property
    def state(self) -> StateFolder:
        return self.workspace.state(self.topology.name)

    @property
    def gitops(self) -> GitopsFolder:
        return self.workspace.gitops(self.topology.name)

    @property
    def runtime(self) -> Path:
        return self.workspace.runtime_folder(self.topology.name)

    @property
    def providers(self) -> Mapping[str, ClusterProvider]:
        """Providers of this topology's clusters on this machine, by name."""
        return local.used_providers(
            self.workspace, self.topology, self.toolbox if self.toolbox.programs else None
        )

    @property
    def provider(self) -> ClusterProvider:
        """Provider of the core cluster."""
        return self.providers[self.topology.spec.core.provider]

    def core_is_adopted(self) -> bool:
        """Whether the core cluster is an existing one that this topology has adopted."""
        providers = [each for each in self.providers.values() if each.info.adopts]
        return any(self.topology.core_cluster in each.names() for each in providers)

    @property
    def in_pods(self) -> bool:
        """Whether the components run as pods of the core cluster."""
        return in_pods(self.topology)

    @property
    def simulates_cloud(self) -> bool:
        """Whether a simulated cloud runs on this machine, beside the components."""
        return bool(self.topology.spec.clouds.simulated)

    def adopts(self, component: str) -> bool:
        """Whether a component is an existing installation on the core cluster."""
        return component in self.topology.spec.core.adopt

    @cached_property
    def kube(self) -> Kube:
        """Admin client of the core cluster; requires start-core. Raises UcpError."""
        core = self.topology.core_cluster
        file = self.state.kubeconfig(core)
        if not file.exists():
            raise UcpError(f"the core cluster {core} does not exist", next="ucp start")
        self.refuse_copy()
        return Kube.from_file(file)

    def refuse_copy(self) -> None:
        """Raises UcpError in a copy of a workspace, whose kubeconfigs are the original's."""
        if original := self.workspace.original():
            core = self.topology.core_cluster
            raise UcpError(
                f"{self.workspace.root} is a copy of {original}, to which the running core "
                f"cluster {core} belongs",
                next=advice_for_copy(original),
            )

    def core_responds(self) -> bool:
        """Whether its API server is ready, and there is a kubeconfig."""
        try:
            return self.kube.ready()
        except UcpError:
            return False

    def is_stopped(self) -> bool:
        """Whether `ucp stop` has ended it. An existing core cluster keeps running."""
        if core_is_existing(self.topology):
            return False
        return self.placement.is_stopping() and not self.placement.states()

    def core_silence(self) -> str:
        """What messages say of a core cluster that doesn't respond: stopped, or maybe broken."""
        state = "stopped" if self.is_stopped() else "not responding"
        return f"the core cluster {self.topology.core_cluster} is {state}"

    def applications(self) -> list[Object]:
        """Our Applications in Argo CD; others' are left out of an adopted one. Raises KubeError."""
        items = self.kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        return adopted_argocd.of_ours(items, self.topology.spec.core.adopt)

    def cloud_secret(self, environment: str) -> Object | None:
        """The Secret with the kubeconfig that Crossplane's provider wrote for a cloud's cluster.

        None: there is none yet. Others may have changed it. Raises KubeError.
        """
        name = f"{self.topology.name}-kubeconfig-{environment}"
        return self.kube.find(SECRET, name, CLUSTERS_NAMESPACE)

    @property
    def core_state(self) -> CoreState:
        """State that only the core has; requires start-core."""
        return CoreState(
            self.kube,
            password_namespaces(self.topology),
            self.topology.spec.reconciler.source_namespaces,
            others_too=self.adopts(crossplane.NAME),
        )

    @property
    def placement(self) -> HostPlacement:
        return HostPlacement(self.state, self.runtime)

    @cached_property
    def host(self) -> Host:
        """The components' host; reserves their ports. Requires install-tools."""
        return Host(
            state=self.state,
            runtime=self.runtime,
            toolbox=self.toolbox,
            ports=Ports(default_registry()).reserve(
                str(self.state.components),
                (
                    *(POD_PORTS if self.in_pods else PORTS),
                    *(SIMULATED_PORTS if self.simulates_cloud else ()),
                ),
                known=recorded(self.state.components),
            ),
            kubeconfig=self.state.kubeconfig(self.topology.core_cluster),
        )

    @property
    def redis(self) -> Redis:
        return Redis(self.host)

    @property
    def argocd(self) -> ArgoCD:
        return ArgoCD(
            self.host,
            resync=in_seconds(self.topology.spec.git.poll),
            transports=frozenset(transports(self.topology)),
            ssh=uses_ssh(self.topology),
        )

    @property
    def crossplane(self) -> Crossplane:
        return Crossplane(self.host, self.topology.spec.crossplane)

    @property
    def reconciler(self) -> ReconcilerComponent:
        """Its part on this machine: all of it, or what can't run in a pod."""
        adopts = any(each.info.adopts for each in self.providers.values())
        return ReconcilerComponent(
            self.host,
            self.workspace.root,
            self.topology.name,
            controllers=ON_MACHINES if self.in_pods else CONTROLLERS,
            kubeconfigs=users_files() if adopts else (),
        )

    @property
    def functions(self) -> CompositionFunctions:
        return CompositionFunctions(self.host)

    @property
    def cloud(self) -> CloudComponent:
        """For topologies that simulate a cloud."""
        return CloudComponent(self.host, self.topology.name)

    @property
    def fence(self) -> FenceFiles:
        """Settings for the guard of this topology's fence, and its permit."""
        return FenceFiles(self.state.fence)

    @property
    def argocd_port(self) -> int:
        """Port of this machine on which Argo CD's server responds."""
        if leads_to_argocd(self.topology):
            return (self.topology.spec.core.ports or CorePorts()).http
        return self.host.ports[argocd_pods.FORWARD if self.in_pods else argocd.SERVER]

    @property
    def argocd_url(self) -> str:
        port = self.argocd_port
        scheme = adopted_argocd.scheme_and_health(port)[0] if self.adopts(argocd.NAME) else "http"
        return f"{scheme}://{ADDRESS}" if port == HTTP else f"{scheme}://{ADDRESS}:{port}"

    def argocd_health(self) -> Health:
        """Whether its server responds on this machine."""
        if self.adopts(argocd.NAME):
            return adopted_argocd.scheme_and_health(self.argocd_port)[1]
        return probe(self.argocd_port, "/healthz")

    def component(self, name: str) -> Component:
        """A component in this topology's placement."""
        if self.in_pods:
            return self.pod_component(name)
        checks: dict[str, Check] = {
            argocd.NAME: lambda: combine({"redis": self.redis.ready, name: self.argocd.ready}),
            crossplane.NAME: lambda: combine(self._crossplane_checks()),
            reconciler.NAME: lambda: self.reconciler.ready(),
            cloud.NAME: lambda: self.cloud.ready(),
        }
        return HostComponent(name, checks[name])

    def _crossplane_checks(self) -> dict[str, Check]:
        checks: dict[str, Check] = {crossplane.NAME: self.crossplane.ready}
        if self.simulates_cloud:
            checks[composition_functions.NAME] = self.functions.ready
        return checks

    def pod_component(self, name: str) -> PodComponent | AdoptedComponent:
        """A component in pods, ours or adopted; requires start-core."""
        beside: dict[str, Check] = {
            argocd.NAME: self.argocd_health,
            reconciler.NAME: lambda: self.reconciler.ready(),
        }
        if self.adopts(name):
            return AdoptedComponent(name, self.kube, beside.get(name))
        return PodComponent(
            name, self.kube, pod_components.workloads(name, self.topology), beside.get(name)
        )
