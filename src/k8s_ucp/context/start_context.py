"""What the steps and checks of one run share: options, results of earlier steps, waits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.components.component import Check
from k8s_ucp.components.pods.reconciler_image import ReconcilerImage
from k8s_ucp.components.repositories import repository_secrets
from k8s_ucp.context.topology_view import TopologyView
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Scope
from k8s_ucp.gitops.publish.repositories import PublishResult, Resolutions
from k8s_ucp.gitops.render.app_manifests import Manifests
from k8s_ucp.kube import KubeError, Object, Unreachable
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App

READY_SECONDS = 120.0
"""Until a component is ready. On a machine with 20 programs to a CPU, the reconciler took 60 s."""

AWAY_SECONDS = 60.0
"""How long a step retries while an API server does not respond, since it may only be busy."""


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
    """`ucp destroy`: the whole topology is deleted, so nothing may be restarted."""
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
        pending: Callable[[], str],
        report: Callable[[str], None] = lambda _: None,
        *,
        seconds: float,
        pause: float = 0.25,
        next: str | None = None,
    ) -> None:
        """Like wait_until, in this run; a KubeError is a state."""
        wait_until(
            what,
            pending,
            seconds=seconds,
            cancel=self.cancel,
            report=report,
            errors=(KubeError,),
            pause=pause,
            next=next,
        )


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


def await_ready(
    context: StartContext, name: str, check: Check, *, seconds: float = READY_SECONDS
) -> None:
    """Wait until a component is ready. Raises DeadlineExceeded with its last message."""

    def pending() -> str:
        health = check()
        return "" if health.ready else health.message or "not ready"

    seconds = min(seconds, context.upgrade.patience)
    context.wait(
        f"{name} ready", pending, seconds=seconds, pause=0.1, next=f"see `ucp logs {name}`"
    )


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
