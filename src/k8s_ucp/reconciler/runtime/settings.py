"""Settings of the reconciler process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cluster_provider import Reach
from k8s_ucp.names import CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE

BACKUP = "backup"
LOCAL_CLUSTERS = "local-clusters"
REGISTRATION = "registration"
PASSWORDS = "passwords"
APPLICATIONS = "applications"
MIRRORS = "mirrors"
MANAGED_RESOURCES = "managed-resources"
ON_MACHINES = frozenset({BACKUP, LOCAL_CLUSTERS, MANAGED_RESOURCES})
"""Controllers that need the user's files and programs: one per machine, never in a pod."""
CONTROLLERS = ON_MACHINES | {REGISTRATION, PASSWORDS, APPLICATIONS, MIRRORS}


@dataclass(frozen=True)
class BackupSettings:
    """What the backup controller needs of the workspace. url, branch: of the core repository."""

    folder: Path
    """The controller's own: a clone, and a note of why the last backup failed."""
    key: Path
    clone: Path
    """The user's clone, read only."""
    url: str
    branch: str
    others_too: bool = False
    """See CoreState."""


@dataclass(frozen=True)
class Settings:
    """Settings of one reconciler process. Durations are in seconds."""

    kubeconfig: Path | None
    """Of the core cluster, with inlined data; None: the cluster of this pod."""
    machine: str
    """LocalClusters with another `spec.machine` are ignored."""
    topology: str
    limited: bool = True
    """Use the kubeconfig only to request tokens of the reconciler's own ServiceAccount."""
    source_namespaces: tuple[str, ...] = (CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE)
    """Only Secrets in these namespaces can register a cluster."""
    sources_by_name: bool = False
    """There, also Secrets with `-k8s-` in their names, without an owner or a label."""
    mirror_namespaces: tuple[str, ...] = ()
    """Further namespaces that mirrors may copy from; Syncers in them are ignored."""
    password_namespaces: tuple[str, ...] = (CLUSTERS_NAMESPACE,)
    """Only Secrets in these namespaces get passwords."""
    token_lifetime: float = 86_400
    """Requested lifetime, at least 600; the app cluster may grant another one."""
    health_port: int | None = None
    """`/healthz`, `/readyz` and `/metrics`; None: no listener."""
    health_address: str = "127.0.0.1"
    """In a pod its own address, for the kubelet and Prometheus."""
    place: str = ""
    """Where this process runs, for the Lease: name of the pod; empty: the machine."""
    lease_seconds: float = 15
    """Time after which a silent leader is replaced. The leader itself stops earlier."""
    controllers: frozenset[str] = CONTROLLERS - {BACKUP}
    backup: BackupSettings | None = None
    """Required by the controller `backup`."""
    kubeconfigs: Path | None = None
    """Folder for `<cluster>.yaml`, used by people and the command line; None: none written."""
    reach: Reach = Reach.MACHINE
    """Where the users of LocalClusters' kubeconfig Secrets run: Argo CD and registration."""
    drain_seconds: float = 120
    """Limit for draining the apps, load balancers and volumes of a cluster being deregistered."""
    dead_seconds: float = 300
    """How long a cluster being deregistered may be silent before it is deregistered without a
    drain. Its load balancers and volumes in a cloud are left behind then, so this must exceed a
    restart."""
    gone_seconds: float = 10
    """The same for a cluster that a person forgot, or that its owner has deleted."""
    mirror_leave_seconds: float = 60
    """How long a deleted Syncer waits for silent clusters; their copies are deleted later."""
    resync_seconds: float = 15
    """Resync period of sources and owners that are settled."""
    backup_seconds: float = 15
    """How often the core cluster is checked for state that the backup lacks."""
    probe_seconds: float = 6
    """How often a registered cluster is probed the way Argo CD accesses it. An idle cluster that
    hangs is reported after this and the probe's timeout of 3 s."""
    fence: Path | None = None
    """Folder of the fence's local record, which permits this core to write; None: no fence."""
    epoch: int | None = None
    """Epoch with which this process may act; a new epoch needs a new process."""
    aws: AwsAccount | None = None
    """Account of the simulated cloud; None: no AWS resources are reconciled."""
    cloud_poll_seconds: float = 60
    """Poll interval of healthy cloud resources, with a jitter of a tenth."""
    max_reconcile_rate: float = 100
    """Reconciliations of cloud resources per second, in total."""
    watch_seconds: float = 6
    """The server ends a watch after this time; we give up 2 s later."""

    def lease(self, controller: str) -> str:
        """Name of the Lease of a controller."""
        name = f"k8s-ucp-{controller}"
        return f"{name}-{self.machine}" if controller in ON_MACHINES else name

    @property
    def core_cluster(self) -> str:
        """Reserved: no LocalCluster may have this name."""
        return f"{self.topology}-core"
