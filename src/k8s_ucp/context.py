"""What the steps of one run share: the topology, paths, and results of earlier steps."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path

from k8s_ucp.cluster_provider import HTTP, ClusterProvider
from k8s_ucp.clusters import local
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.ports import Ports, default_registry, recorded
from k8s_ucp.clusters.user_kubeconfig import users_files
from k8s_ucp.components import argocd, cloud, composition_functions, crossplane, reconciler
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.cloud import CloudComponent
from k8s_ucp.components.component import (
    ADDRESS,
    Check,
    Component,
    Health,
    HostComponent,
    combine,
    probe,
)
from k8s_ucp.components.composition_functions import CompositionFunctions
from k8s_ucp.components.crossplane import Crossplane
from k8s_ucp.components.host import redis
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.components.pods import argocd_pods, pod_components
from k8s_ucp.components.pods.component import PodComponent
from k8s_ucp.components.pods.reconciler_image import ReconcilerImage
from k8s_ucp.components.reconciler import ReconcilerComponent
from k8s_ucp.components.repositories import repository_secrets
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Scope
from k8s_ucp.gitops.publish.repositories import PublishResult, Resolutions
from k8s_ucp.gitops.render.app_manifests import Manifests
from k8s_ucp.gitops.render.values.addons import leads_to_argocd, password_namespaces
from k8s_ucp.kube import APPLICATION, SECRET, Kube, KubeError, Object, Unreachable
from k8s_ucp.names import ARGOCD_NAMESPACE, CLUSTERS_NAMESPACE
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.runtime.settings import CONTROLLERS, ON_MACHINES
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Topology
from k8s_ucp.topology.parts import CorePorts
from k8s_ucp.topology.placement import in_pods
from k8s_ucp.topology.transports import transports
from k8s_ucp.topology.values import in_seconds
from k8s_ucp.workspace import GitopsFolder, StateFolder, Workspace

AWAY_SECONDS = 60.0
"""How long a step retries while an API server does not respond, since it may only be busy."""
PORTS = (*redis.PORTS, *argocd.PORTS, *crossplane.PORTS, *reconciler.PORTS)
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
        if original := self.workspace.original():
            raise UcpError(
                f"{self.workspace.root} is a copy of {original}, to which the running core "
                f"cluster {core} belongs",
                next=f"add --workspace {shlex.quote(original)} to the command; or ucp start, to "
                "start the copy",
            )
        return Kube.from_file(file)

    def core_responds(self) -> bool:
        """Whether its API server is ready, and there is a kubeconfig."""
        try:
            return self.kube.ready()
        except UcpError:
            return False

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


@dataclass
class AdoptionResult:
    """What a start found in clouds that an old core of this topology had made."""

    adopted: int = 0
    """Number of cloud resources that this run adopted."""
    differing: list[str] = field(default_factory=list)
    """Descriptions of those whose state in the cloud differs from git."""
    recreated: list[str] = field(default_factory=list)
    """Descriptions of resources in git that no longer existed in a cloud."""


@dataclass
class PublishOptions:
    """How this run publishes the repositories, and what the commits contain besides the render."""

    resolutions: Resolutions = field(default_factory=Resolutions)
    """Conflicts that the user has resolved."""
    subject: str = ""
    """Of the commits in both repositories; default mentions the topology."""
    removed: Scope = EMPTY_SCOPE
    """Environments and apps whose folders are deleted, with users' additions in them."""
    departing: tuple[App, ...] = ()
    """Apps without an entry in ucp.yaml whose projects stay until their Applications are
    deleted."""
    before_push: Callable[[], None] = lambda: None
    """Called after all checks have passed, before anything is pushed."""
    whole: bool = False
    """Both repositories get the change, or neither."""
    merged_into_apps: Callable[[Repository], Sequence[str]] = lambda _: ()
    """Commits that the app repository's new commit merges: the history of imported apps."""
    scratch: Path | None = None
    """A folder for the clones of --plan, which leaves those of the user unchanged."""


@dataclass
class TeardownState:
    """What `ucp stop` or `ucp destroy` is to delete, and what it has found so far."""

    destroys: bool = False
    """`ucp destroy`: the whole topology goes, so nothing may be restarted."""
    delete_data: bool = False
    """A destroy deletes databases and machines too; a stop deletes data of local clusters."""
    abandon: frozenset[str] = frozenset()
    """Names of resources to abandon if they can't be deleted; also a core that does not respond."""
    longest_wait: float | None = None
    """Timeout in seconds of each wait; None: default for clouds."""
    unasked: list[str] = field(default_factory=list)
    """What may be lost with a core that could not be contacted."""
    no_orphans: bool = False
    """The core has confirmed that Crossplane manages nothing."""
    kept: list[str] = field(default_factory=list)
    """Descriptions of what stays in clouds."""
    snapshots: list[str] = field(default_factory=list)
    """Snapshots in a cloud of databases that were deleted."""
    dns_records: list[str] = field(default_factory=list)
    """Hosts whose records the add-on external-dns deletes, which can't be verified from here."""
    read_back: int = 0
    """Number of resources that were verified to be gone."""

    def timeout(self, default: float) -> float:
        """Seconds of a wait."""
        return default if self.longest_wait is None else self.longest_wait


@dataclass
class UpgradeState:
    """What an upgrade is to change, and what it has changed so far."""

    pins: Toolbox = field(default_factory=lambda: Toolbox({}, {}))
    """The programs of this release of ucp."""
    parts: frozenset[str] = frozenset()
    """Names of the parts to upgrade; empty: all."""
    patience: float = math.inf
    """Seconds to wait for a part before it is rolled back."""
    healthy_before: frozenset[str] = frozenset()
    """Descriptions of what was healthy before it."""
    changes: list[str] = field(default_factory=list)
    """Changes made so far, with versions."""


@dataclass
class StartContext(TopologyView):
    """One run on one topology. Created by the command line, passed to every step."""

    topology_file: bytes = b""
    """ucp.yaml as the user wrote it."""
    manifests: Manifests = field(default_factory=dict)
    """Manifests of apps that are given by path."""
    publishing: PublishOptions = field(default_factory=PublishOptions)
    git_credential: Credential | None = None
    """For the user's repositories over http(s); if None, their own git settings apply."""
    git_read_credential: Credential | None = None
    """For Argo CD to read them; if None, the one that pushes."""
    cancel: Cancel = field(default_factory=Cancel)
    takeover: bool = False
    """This start may take the fence from a core that did not release it."""
    journal: Journal = field(default_factory=lambda: Journal(None, ""))
    """Of this run; stores what a rerun could find nowhere else."""
    only: frozenset[str] = frozenset()
    """Environments to wait for; empty: all that run."""
    notes: list[str] = field(default_factory=list)
    """Findings of the checks that don't prevent the run, but that the user should know."""
    adoption: AdoptionResult = field(default_factory=AdoptionResult)
    teardown: TeardownState = field(default_factory=TeardownState)
    upgrade: UpgradeState = field(default_factory=UpgradeState)
    argocd_since: float = 0.0
    """When this run started Argo CD's controller; 0: it ran before. Older status is outdated."""
    published: PublishResult = field(init=False, repr=False)
    """Result of publish-repositories, or with --plan the expected one."""

    @property
    def planned(self) -> PublishResult | None:
        """Expected content of the repositories; None if it can't be known yet."""
        return getattr(self, "published", None)

    def settle_runtime(self) -> None:
        """Create and record the folder for sockets. Raises UcpError."""
        self.workspace.settle_runtime_folder(self.topology.name)
        self.__dict__.pop("host", None)  # it contains the previous folder

    def repository_secrets(self) -> list[Object]:
        """Secrets with which Argo CD reads the user's repositories, if there is a token."""
        return repository_secrets(
            self.topology, self.gitops, read=self.git_read_credential, write=self.git_credential
        )

    @cached_property
    def engine(self) -> ContainerEngine:
        """The user's container engine; it is not called yet."""
        return ContainerEngine()

    @property
    def reconciler_image(self) -> ReconcilerImage:
        """The image that is built here; the topology may name another."""
        return ReconcilerImage.wanted(self.topology.spec.images.mirror)

    def wait(
        self,
        what: str,
        look: Callable[[], str],
        report: Callable[[str], None] = lambda _: None,
        *,
        seconds: float,
        pause: float = 0.25,
        next: str | None = None,
    ) -> None:
        """Like wait_until, but reports the state, and treats KubeErrors as a state."""

        def seen() -> str:
            try:
                state = look()
            except KubeError as error:
                state = error.message
            report(state)
            return state

        wait_until(what, seen, seconds=seconds, cancel=self.cancel, pause=pause, next=next)


def planned_cluster(provider: ClusterProvider, name: str) -> PlannedChange:
    """What starting a cluster would do."""
    state = provider.state(name)
    what = f"cluster {name}"
    if not state.exists:
        kind = f"{provider.info.name}, simulated" if provider.info.simulated else provider.info.name
        return PlannedChange("create", what, f"it does not exist ({kind})")
    if not state.ready:
        return PlannedChange("change", what, f"it is started with its data: {state.message}")
    if state.outdated:
        return PlannedChange("change", what, "it is restarted with new settings")
    return PlannedChange("keep", what, "it is running")


def await_ready(context: StartContext, name: str, check: Check, *, seconds: float = 60) -> None:
    """Wait until a component is ready. Raises DeadlineExceeded with its last message."""

    def look() -> str:
        health = check()
        return "" if health.ready else health.message or "not ready"

    seconds = min(seconds, context.upgrade.patience)
    context.wait(f"{name} ready", look, seconds=seconds, pause=0.1, next=f"see `ucp logs {name}`")


def persistent(
    run: Callable[[StartContext, Report], None],
) -> Callable[[StartContext, Report], None]:
    """Make a step's function start again while an API server does not respond."""

    @wraps(run)
    def until_answered(context: StartContext, report: Report) -> None:
        away_since = None
        while True:
            try:
                return run(context, report)
            except Unreachable as error:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since >= AWAY_SECONDS:
                    raise
                report(error.message)
                context.cancel.pause(1.0)

    return until_answered
