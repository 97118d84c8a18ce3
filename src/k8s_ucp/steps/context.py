"""What the steps of one run share: what is wanted, where things lie, what earlier steps made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters import local
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind import KindProvider
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.clusters.user_kubeconfig import users_files
from k8s_ucp.components import argocd, crossplane, reconciler, redis
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.crossplane import Crossplane
from k8s_ucp.components.health import Check
from k8s_ucp.components.host import Host
from k8s_ucp.components.placement import HostPlacement
from k8s_ucp.components.reconciler import Reconciler
from k8s_ucp.components.redis import Redis
from k8s_ucp.gitops.git_environment import Credential
from k8s_ucp.gitops.manifests import Manifests
from k8s_ucp.gitops.publish import PublishResult, Settled
from k8s_ucp.gitops.render import seconds
from k8s_ucp.kube import Kube
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.waiting import Cancel, wait_until
from k8s_ucp.workspace import GitopsFolder, StateFolder, Workspace

PORTS = (*redis.PORTS, *argocd.PORTS, *crossplane.PORTS, *reconciler.PORTS)


@dataclass
class Context:
    """One run on one topology. Made by the command line, handed to every step."""

    workspace: Workspace
    topology: Topology
    topology_file: bytes = b""
    """ucp.yaml as the user wrote it."""
    manifests: Manifests = field(default_factory=dict)
    """Of apps that are given by path."""
    settled: Settled = field(default_factory=Settled)
    """Conflicts that the user has decided."""
    git_credential: Credential | None = None
    """For repositories of the user's over http(s); their own git settings count without it."""
    cancel: Cancel = field(default_factory=Cancel)
    notes: list[str] = field(default_factory=list)
    """What the checks found that is no reason to stop, and that people should know."""
    argocd_since: float = 0.0
    """When this run started Argo CD's controller; 0: it ran before. What it said earlier is old."""
    _toolbox: Toolbox | None = None
    _published: PublishResult | None = None

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
    def toolbox(self) -> Toolbox:
        """Of install-tools."""
        assert self._toolbox is not None, "install-tools comes first"
        return self._toolbox

    @toolbox.setter
    def toolbox(self, value: Toolbox) -> None:
        self._toolbox = value

    @property
    def published(self) -> PublishResult:
        """Of publish-repositories."""
        assert self._published is not None, "publish-repositories comes first"
        return self._published

    @published.setter
    def published(self, value: PublishResult) -> None:
        self._published = value

    @cached_property
    def engine(self) -> ContainerEngine:
        """The user's container engine; nothing is asked of it yet."""
        return ContainerEngine()

    @property
    def providers(self) -> Mapping[str, ClusterProvider]:
        """The makers of this topology's clusters on this machine, by name."""
        return local.used_providers(self.workspace, self.topology, self._toolbox)

    @property
    def provider(self) -> ClusterProvider:
        """Of the core cluster."""
        return self.providers[self.topology.spec.core.provider]

    @property
    def kind(self) -> KindProvider:
        """Of kind clusters, the core or others."""
        return local.kind(self.workspace, self.topology, self._toolbox, self.engine)

    @cached_property
    def kube(self) -> Kube:
        """The core cluster, as its admin; start-core comes first."""
        return Kube.from_file(self.state.kubeconfig(self.topology.core_cluster))

    @property
    def placement(self) -> HostPlacement:
        return HostPlacement(self.state, self.runtime)

    @cached_property
    def host(self) -> Host:
        """install-tools comes first. Reserves the components' ports."""
        return Host(
            state=self.state,
            runtime=self.runtime,
            toolbox=self.toolbox,
            ports=Ports(default_registry()).reserve(str(self.state.components), PORTS),
            kubeconfig=self.state.kubeconfig(self.topology.core_cluster),
        )

    @property
    def redis(self) -> Redis:
        return Redis(self.host)

    @property
    def argocd(self) -> ArgoCD:
        return ArgoCD(self.host, resync=seconds(self.topology.spec.git.poll))

    @property
    def crossplane(self) -> Crossplane:
        return Crossplane(self.host, self.topology.spec.crossplane)

    @property
    def reconciler(self) -> Reconciler:
        adopts = any(each.adopts for each in (p.info for p in self.providers.values()))
        kubeconfigs = users_files() if adopts else ()
        return Reconciler(self.host, self.workspace.root, self.topology.name, kubeconfigs)


def await_ready(context: Context, name: str, check: Check, *, seconds: float = 60) -> None:
    """Wait until a component says that it is well. Raises DeadlineExceeded with what it said."""

    def look() -> str:
        health = check()
        return "" if health.ready else health.message or "not ready"

    wait_until(
        f"{name} ready",
        look,
        seconds=seconds,
        cancel=context.cancel,
        pause=0.1,
        next=f"see `ucp logs {name}`",
    )
