"""Settings of the reconciler process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cluster_provider import Reach

BACKUP = "backup"
LOCAL_CLUSTERS = "local-clusters"
REGISTRATION = "registration"
PASSWORDS = "passwords"
MIRRORS = "mirrors"
MANAGED_RESOURCES = "managed-resources"
ON_MACHINES = frozenset({BACKUP, LOCAL_CLUSTERS, MANAGED_RESOURCES})
"""Those that need the user's folders and programs: never in a pod, and on each machine its own."""
CONTROLLERS = ON_MACHINES | {REGISTRATION, PASSWORDS, MIRRORS}


@dataclass(frozen=True)
class BackupSettings:
    """What the backup controller needs of the workspace. url, branch: of the core repository."""

    folder: Path
    """Its own: a clone, and a note of why the last look could not write what is new."""
    key: Path
    clone: Path
    """The user's, which is read and left as it is."""
    url: str
    branch: str
    others_too: bool = False
    """As of CoreState."""


@dataclass(frozen=True)
class Settings:
    """One reconciler process. Durations are in seconds."""

    kubeconfig: Path | None
    """Of the core cluster, with its data inlined; None: the cluster whose pod this is."""
    machine: str
    """LocalClusters of any other `spec.machine` are left alone."""
    topology: str
    limited: bool = True
    """Use the kubeconfig only to ask for tokens of the reconciler's own ServiceAccount."""
    source_namespaces: tuple[str, ...] = ("ucp-clusters", "crossplane-system")
    """Only Secrets in these namespaces can register a cluster."""
    sources_by_name: bool = False
    """There, Secrets with `-k8s-` in their names can, without an owner or a label."""
    mirror_namespaces: tuple[str, ...] = ()
    """Namespaces that mirrors may copy from, beside those; Syncers don't count there."""
    password_namespaces: tuple[str, ...] = ("ucp-clusters",)
    """Only Secrets in these namespaces are given passwords."""
    token_lifetime: float = 86_400
    """Asked for; what the app cluster grants counts. At least 600."""
    health_port: int | None = None
    """`/healthz`, `/readyz` and `/metrics`; None: no listener."""
    health_address: str = "127.0.0.1"
    """A pod listens on its own address, for the kubelet and Prometheus."""
    place: str = ""
    """Where this process runs, for the Lease: a pod's name; empty: the machine."""
    lease_seconds: float = 15
    """How long another process waits for a holder that fell silent. The holder stops before."""
    controllers: frozenset[str] = CONTROLLERS - {BACKUP}
    backup: BackupSettings | None = None
    """Needed by the controller of that name."""
    kubeconfigs: Path | None = None
    """Folder for `<cluster>.yaml`, read by people and by the command line; None: none written."""
    reach: Reach = Reach.MACHINE
    """Where those run who use the kubeconfig Secrets of LocalClusters: Argo CD and registration."""
    drain_seconds: float = 120
    """How long a leaving cluster may take to let go of its apps, load balancers and volumes."""
    dead_seconds: float = 300
    """How long a leaving cluster may be silent until it is let go without having been drained. What
    its load balancers and volumes are in a cloud stays there then, so a restart must fit in."""
    gone_seconds: float = 10
    """The same for one that a person forgot, or that what made it has removed."""
    mirror_leave_seconds: float = 60
    """How long a deleted Syncer waits for clusters that don't answer; their copies go later."""
    resync_seconds: float = 15
    """How often a source or owner that is settled is looked at again, without any event."""
    backup_seconds: float = 15
    """How often the core is looked at for what the backup lacks."""
    probe_seconds: float = 6
    """How often a registered cluster is asked as Argo CD would ask it. One that hangs, with nothing
    going on, is told of after this and the 3 s of the question."""
    fence: Path | None = None
    """Folder of what permits this core to write; None: nothing guards it."""
    epoch: int | None = None
    """With which this process may act; another one needs another process."""
    aws: AwsAccount | None = None
    """In the cloud on this machine; None: no resources of AWS are looked at."""
    cloud_poll_seconds: float = 60
    """Between two looks at a resource of a cloud that is well; a tenth more or less."""
    max_reconcile_rate: float = 100
    """Looks at resources of a cloud in a second, all together."""
    watch_seconds: float = 6
    """A watch is ended by the server after this time, and given up 2 s later by us."""

    def lease(self, controller: str) -> str:
        """Name of the Lease whose holder works."""
        name = f"k8s-ucp-{controller}"
        return f"{name}-{self.machine}" if controller in ON_MACHINES else name

    @property
    def core_cluster(self) -> str:
        """Name that no LocalCluster may take."""
        return f"{self.topology}-core"
