"""What the steps of one run share: the topology, paths, and results of earlier steps."""

from __future__ import annotations

import math
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
from k8s_ucp.engine.foresight import Foreseen
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Scope
from k8s_ucp.gitops.publish.repositories import PublishResult, Resolutions
from k8s_ucp.gitops.render.app_manifests import Manifests
from k8s_ucp.gitops.render.values.addons import leads_to_argocd, password_namespaces
from k8s_ucp.kube import APPLICATION, Kube, KubeError, Object, Unreachable
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.runtime.settings import CONTROLLERS, ON_MACHINES
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Topology
from k8s_ucp.topology.parts import CorePorts
from k8s_ucp.topology.placement import in_pods
from k8s_ucp.topology.values import in_seconds
from k8s_ucp.workspace import GitopsFolder, StateFolder, Workspace

AWAY_SECONDS = 60.0
"""So long a step goes on asking an API server that doesn't respond: a busy one comes back."""
PORTS = (*redis.PORTS, *argocd.PORTS, *crossplane.PORTS, *reconciler.PORTS)
SIMULATED_PORTS = (*cloud.PORTS, *composition_functions.PORTS)
"""Where a cloud is simulated: what is declared of it is composed here."""
POD_PORTS = (*argocd_pods.PORTS, *reconciler.PORTS)
"""Of this machine, where the components run in pods."""


@dataclass
class TopologyView:
    """A topology and what can be seen of it: all that status, doctor, logs, get and open need."""

    workspace: Workspace
    topology: Topology
    toolbox: Toolbox = field(default_factory=lambda: Toolbox({}, {}), kw_only=True)
    """The pinned programs, once install-tools has run; what is only looked at needs none."""

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
        """The makers of this topology's clusters on this machine, by name."""
        return local.used_providers(
            self.workspace, self.topology, self.toolbox if self.toolbox.programs else None
        )

    @property
    def provider(self) -> ClusterProvider:
        """Of the core cluster."""
        return self.providers[self.topology.spec.core.provider]

    def core_is_adopted(self) -> bool:
        """Others made the core cluster, and this topology uses it."""
        makers = [each for each in self.providers.values() if each.info.adopts]
        return any(self.topology.core_cluster in each.names() for each in makers)

    @property
    def in_pods(self) -> bool:
        """The components run as pods of the core cluster."""
        return in_pods(self.topology)

    @property
    def simulates_cloud(self) -> bool:
        """A cloud runs on this machine, beside the components."""
        return bool(self.topology.spec.clouds.simulated)

    def adopts(self, component: str) -> bool:
        """It is there already, on a core of others, and theirs."""
        return component in self.topology.spec.core.adopt

    @cached_property
    def kube(self) -> Kube:
        """The core cluster, as its admin; start-core comes first. Raises UcpError."""
        core = self.topology.core_cluster
        file = self.state.kubeconfig(core)
        if not file.exists():
            raise UcpError(f"the core cluster {core} does not exist", next="ucp start")
        return Kube.from_file(file)

    def core_answers(self) -> bool:
        """Its API server is ready, and there is a way in."""
        try:
            return self.kube.ready()
        except UcpError:
            return False

    def applications(self) -> list[Object]:
        """Of Argo CD, but for what others have in one that is theirs. Raises KubeError."""
        items = self.kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        return adopted_argocd.of_ours(items, self.topology.spec.core.adopt)

    @property
    def core_state(self) -> CoreState:
        """What the core alone knows; start-core comes first."""
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
        """install-tools comes first. Reserves the components' ports."""
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
        return ArgoCD(self.host, resync=in_seconds(self.topology.spec.git.poll))

    @property
    def crossplane(self) -> Crossplane:
        return Crossplane(self.host, self.topology.spec.crossplane)

    @property
    def reconciler(self) -> ReconcilerComponent:
        """Its part on this machine: all of it, or what no pod can do."""
        adopts = any(each.adopts for each in (p.info for p in self.providers.values()))
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
        """Of topologies that simulate one."""
        return CloudComponent(self.host, self.topology.name)

    @property
    def fence(self) -> FenceFiles:
        """What the guard of this topology's fence is told, and permits."""
        return FenceFiles(self.state.fence)

    @property
    def argocd_port(self) -> int:
        """Of this machine, where Argo CD's server answers."""
        if leads_to_argocd(self.topology):
            return (self.topology.spec.core.ports or CorePorts()).http
        return self.host.ports[argocd_pods.FORWARD if self.in_pods else argocd.SERVER]

    @property
    def argocd_url(self) -> str:
        port = self.argocd_port
        scheme = adopted_argocd.answers(port)[0] if self.adopts(argocd.NAME) else "http"
        return f"{scheme}://{ADDRESS}" if port == HTTP else f"{scheme}://{ADDRESS}:{port}"

    def argocd_answers(self) -> Health:
        """Its server does, on this machine."""
        if self.adopts(argocd.NAME):
            return adopted_argocd.answers(self.argocd_port)[1]
        return probe(self.argocd_port, "/healthz")

    def component(self, name: str) -> Component:
        """A component where this topology runs it."""
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
        """A component in pods, ours or adopted; start-core comes first."""
        beside: dict[str, Check] = {
            argocd.NAME: self.argocd_answers,
            reconciler.NAME: lambda: self.reconciler.ready(),
        }
        if self.adopts(name):
            return AdoptedComponent(name, self.kube, beside.get(name))
        return PodComponent(
            name, self.kube, pod_components.workloads(name, self.topology), beside.get(name)
        )


@dataclass
class StartContext(TopologyView):
    """One run on one topology. Made by the command line, handed to every step."""

    topology_file: bytes = b""
    """ucp.yaml as the user wrote it."""
    manifests: Manifests = field(default_factory=dict)
    """Of apps that are given by path."""
    resolutions: Resolutions = field(default_factory=Resolutions)
    """Conflicts that the user has decided."""
    subject: str = ""
    """Of the commits in both repositories; without it they name the topology."""
    removed: Scope = EMPTY_SCOPE
    """Environments and apps whose folders go, with what people added there."""
    departing: tuple[App, ...] = ()
    """Apps whose projects stay though ucp.yaml has them no more: Applications are still leaving."""
    before_push: Callable[[], None] = lambda: None
    """Called once everything that can be checked was, before anything is pushed."""
    whole: bool = False
    """Both repositories get the change, or neither."""
    merged_into_apps: Callable[[Repository], Sequence[str]] = lambda _: ()
    """Commits that the app repository's new one merges: the history of imported apps."""
    git_credential: Credential | None = None
    """For repositories of the user's over http(s); their own git settings count without it."""
    git_read_credential: Credential | None = None
    """What Argo CD reads them with; without it, the one that pushes."""
    cancel: Cancel = field(default_factory=Cancel)
    abandon: frozenset[str] = frozenset()
    """Names of what is given up if it can't be deleted; the core cluster's, where it is silent."""
    longest_wait: float | None = None
    """Seconds that each wait of a teardown may take; None: as long as clouds take."""
    takeover: bool = False
    """This start may take the fence from a core that did not release it."""
    unasked: list[str] = field(default_factory=list)
    """What may be lost with a core that could not be asked."""
    journal: Journal = field(default_factory=lambda: Journal(None, ""))
    """Of this run: what a rerun could find nowhere else is kept there."""
    destroys: bool = False
    """This run is a teardown: nothing that ends is to come back."""
    delete_data: bool = False
    """A teardown takes databases and machines, too; a stop what clusters of this machine keep."""
    kept: list[str] = field(default_factory=list)
    """What a teardown leaves in clouds, in words."""
    snapshots: list[str] = field(default_factory=list)
    """What databases that a teardown deleted have left in a cloud."""
    dns_records: list[str] = field(default_factory=list)
    """Hosts whose records the add-on external-dns deletes, which nobody can look at from here."""
    read_back: int = 0
    """Resources that a teardown looked for, and that are gone."""
    adopted: int = 0
    """Cloud resources of an old core that this run found again, and manages now."""
    differing: list[str] = field(default_factory=list)
    """Those of them that the cloud has otherwise than git declares, in words."""
    recreated: list[str] = field(default_factory=list)
    """What git declares and no cloud has any more, in words."""
    no_orphans: bool = False
    """The core has said that Crossplane keeps nothing."""
    only: frozenset[str] = frozenset()
    """Environments that are waited for; empty: all that run."""
    notes: list[str] = field(default_factory=list)
    """What the checks found that is no reason to stop, and that people should know."""
    pins: Toolbox = field(default_factory=lambda: Toolbox({}, {}))
    """What this ucp brings, where an upgrade moves a topology there."""
    upgraded: frozenset[str] = frozenset()
    """Names of the parts that an upgrade is about; empty: all."""
    well: frozenset[str] = frozenset()
    """What was well before an upgrade, in words."""
    moved: list[str] = field(default_factory=list)
    """What an upgrade has moved so far, with its versions."""
    patience: float = math.inf
    """Seconds that an upgrade waits for a part before it goes back."""
    argocd_since: float = 0.0
    """When this run started Argo CD's controller; 0: it ran before. What it said earlier is old."""
    published: PublishResult = field(init=False, repr=False)
    """Of publish-repositories; of its foresight, what it would be."""
    scratch: Path | None = None
    """A folder for the clones that foresight works in: those of the user stay as they are."""

    @property
    def foreseen(self) -> PublishResult | None:
        """What the repositories would hold; None where that can't be known yet."""
        return getattr(self, "published", None)

    def settle_runtime(self) -> None:
        """Make the folder for sockets and write down which one it is. Raises UcpError."""
        self.workspace.settle_runtime_folder(self.topology.name)
        self.__dict__.pop("host", None)  # it holds the folder as it was before

    def repository_secrets(self) -> list[Object]:
        """What lets Argo CD read the user's repositories, where a token was given for them."""
        return repository_secrets(
            self.topology, self.gitops, read=self.git_read_credential, write=self.git_credential
        )

    @cached_property
    def engine(self) -> ContainerEngine:
        """The user's container engine; nothing is asked of it yet."""
        return ContainerEngine()

    @property
    def reconciler_image(self) -> ReconcilerImage:
        """As it is built here; the topology may name another."""
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
        """As wait_until; the state is reported, and an API server's failure is one as well."""

        def seen() -> str:
            try:
                state = look()
            except KubeError as error:
                state = error.message
            report(state)
            return state

        wait_until(what, seen, seconds=seconds, cancel=self.cancel, pause=pause, next=next)


def foreseen_cluster(maker: ClusterProvider, name: str) -> Foreseen:
    """What bringing a cluster up would do."""
    state = maker.state(name)
    what = f"cluster {name}"
    if not state.exists:
        kind = f"{maker.info.name}, simulated" if maker.info.simulated else maker.info.name
        return Foreseen("create", what, f"it does not exist ({kind})")
    if not state.ready:
        return Foreseen("change", what, f"it is started with its data: {state.message}")
    if state.outdated:
        return Foreseen("change", what, "it is restarted with new settings")
    return Foreseen("keep", what, "it is running")


def await_ready(context: StartContext, name: str, check: Check, *, seconds: float = 60) -> None:
    """Wait until a component says that it is well. Raises DeadlineExceeded with what it said."""

    def look() -> str:
        health = check()
        return "" if health.ready else health.message or "not ready"

    seconds = min(seconds, context.patience)
    context.wait(f"{name} ready", look, seconds=seconds, pause=0.1, next=f"see `ucp logs {name}`")


def persistent(
    run: Callable[[StartContext, Report], None],
) -> Callable[[StartContext, Report], None]:
    """A step's function that begins anew where an API server does not respond."""

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
