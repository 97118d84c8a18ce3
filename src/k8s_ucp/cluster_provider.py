"""The protocol that all providers of clusters implement, and the properties of a provider.

tests/contracts verifies the contract for every provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Protocol

from k8s_ucp.errors import UcpError

Report = Callable[[str], None]
"""Called with one line of progress; never with a secret."""


class Network(IntEnum):
    """Who can reach a provider's clusters, and whom they can reach; each includes the former."""

    LOOPBACK = 1
    """Programs on this machine."""
    CONTAINERS = 2
    """Containers on this machine."""
    WORLD = 3
    """Other machines; this machine's folders and loopback addresses are not reachable."""


class Placement(Enum):
    """Where the components of a core cluster run."""

    HOST = "host"
    """As processes of this machine."""
    PODS = "pods"


@dataclass(frozen=True)
class ManagedFields:
    """Fields of a kind below spec.forProvider, and the topology's values for them."""

    kind: str
    """Or several kinds, in the syntax of a kustomize selector."""
    fields: str
    """`<field>=<value>`, separated by spaces; values: region, area (a region without its zone),
    zone-a, zone-b, version, size, protection. If the topology has no value, the base's own is
    kept."""
    name: str = ""
    """Of the objects, in the same syntax; empty: all."""
    network: bool = False
    """It belongs to the network, which can also be another cluster's or a database's."""


@dataclass(frozen=True)
class ManagedCluster:
    """How Crossplane creates a cluster: templates/core/clusters/base/<provider>/.

    Field names are those of the packages pinned in clouds.py. They are verified against
    tests/unit/gitops/provider_fields.json, which is generated from the packages' CRDs.
    """

    packages: tuple[str, ...]
    """In addition to that of the cloud's family."""
    region: str
    """Default region or zone."""
    group: str
    kinds: Mapping[str, str]
    """Kinds of the group that are trusted owners of a kubeconfig, with their plurals."""
    references: str
    """Fields below spec.forProvider, separated by spaces, that get an environment's suffix like the
    names themselves; if a field ends with Ref or Refs, its `name` does."""
    fields: tuple[ManagedFields, ...]
    status_has_authority: bool = False
    """The status of its objects contains the CA of the API server. Other providers treat the CA as
    confidential, so that it is in the connection Secret only."""
    kubeconfig_kind: str = ""
    """A kind that writes the kubeconfig of a Cluster, creates nothing in the cloud, and references
    the Cluster only by its name; empty: the cluster itself writes it."""
    own_subnetwork: str = ""
    """A field of Cluster that is removed if the network is not managed by ucp."""

    @property
    def reference_paths(self) -> tuple[str, ...]:
        return (
            *(
                f"spec/forProvider/{each}{'/name' if each.endswith(('Ref', 'Refs')) else ''}"
                for each in self.references.split()
            ),
            "spec/writeConnectionSecretToRef/name",
        )

    @property
    def has_network(self) -> bool:
        """Whether its network is a separate base."""
        return any(each.network for each in self.fields)

    @property
    def has_protection(self) -> bool:
        """Whether the cluster sets the cloud's protection against deletion."""
        return any("=protection" in each.fields for each in self.fields)


@dataclass(frozen=True)
class ProviderInfo:
    """Properties of a provider, on which all other code bases its decisions; see providers.py."""

    name: str
    factory: str = ""
    """`module:function` that creates its ClusterProvider (arguments: see clusters/local.py); empty
    if Crossplane creates all of its clusters."""
    core: bool = False
    """Whether core clusters can use it."""
    cloud: str = ""
    """The cloud that bills for its clusters, by its name in clouds.py."""
    managed: ManagedCluster | None = None
    """For environments whose clusters Crossplane creates. Others' clusters are LocalClusters, which
    the reconciler on this machine creates with the factory."""
    network: Network = Network.WORLD
    placement: Placement = Placement.PODS
    """Of a core's components."""
    simulated: bool = False
    """Workloads are simulated: pods become Ready without running."""
    adopts: bool = False
    """Its clusters exist already and are accessed with a context of the user's kubeconfig: deleting
    one here releases it, with everything on it."""
    takes_seed: bool = False
    """Its clusters can be created with CRDs in them; for others CRDs are applied later."""
    can_copy: bool = False
    """It can create a throwaway copy of one of its clusters."""
    loads_images: bool = False
    """Images of this machine can be loaded into its nodes; other nodes pull them."""
    removed_by_stop: bool = False
    """`ucp stop` deletes its clusters; others keep their data."""
    remote: bool = False
    """Its clusters are queried over the internet, with a credential."""
    linux_only: bool = False
    unavailable: str = ""
    """`module:function` that returns why its clusters can't be created on this machine, if so."""
    pinned_version: bool = False
    """Its clusters always run the Kubernetes version that ucp ships."""
    needs_version: str = ""
    """Why the topology must set the Kubernetes version, with an example; empty: it need not."""
    keys: tuple[str, ...] = ()
    """Keys of the topology, in addition to version, that its clusters may have."""
    longest_name: int | None = None
    """Maximum length of a cluster's name, if shorter than a label's."""
    tools: tuple[str, ...] = ()
    """Pinned programs that its clusters need."""
    megabytes: int = 0
    """Approximate memory on this machine per cluster."""
    create_seconds: float = 600.0
    """Timeout for a core cluster to start; an image may have to be pulled."""
    access_seconds: float | None = None
    """Validity of an admin kubeconfig; None if it does not expire."""
    comment: str = ""
    """Comment in a new ucp.yaml."""
    offer: str = ""
    """Description in the wizard; empty if flags and answers are not sufficient to configure it."""
    folder: str = ""
    """Folder of its files in the state of a topology; default is its name."""

    @property
    def state_folder(self) -> str:
        return self.folder or self.name

    @property
    def makes_nodes(self) -> bool:
        """Whether its environments get real nodes here; their images may have to be pulled."""
        return not (self.managed or self.simulated or self.adopts)

    @property
    def takes_traffic(self) -> bool:
        """Whether ports 80 and 443 of its nodes are mapped to this machine's loopback interface."""
        return "ports" in self.keys


class Reach(Enum):
    """From where an API server must be reachable."""

    MACHINE = "machine"
    """Programs on this machine."""
    PODS = "pods"
    """Pods of the core cluster, if its components run there."""


CONTEXT, REGION, SIZE = "context", "region", "size"
"""Parameters of a request: keys of the topology."""
HTTP, HTTPS = 80, 443
"""Ports of a node on which an ingress controller listens."""


@dataclass(frozen=True)
class Seed:
    """CRDs that a cluster is created with, and nothing that would identify a cluster."""

    digest: str
    """Of the manifests from which they were applied originally."""
    crds: Mapping[str, str]
    """By name, in the format of the datastore."""


@dataclass(frozen=True)
class ClusterRequest:
    """A cluster that should exist."""

    name: str
    """`<topology>-core` or `<topology>-<environment>`; RFC 1123 label."""
    version: str | None = None
    """Kubernetes version; None: the provider's pinned one."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Provider-specific settings (region, size, nodes ...)."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """Port of the nodes -> port of this machine's loopback interface that leads to it. A provider
    whose nodes take traffic chooses free ones for 80 and 443 if there are none."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine to mount into the nodes, read-only: path in the node -> folder."""
    seed: Seed | None = None
    """For a provider that takes one, if the cluster is new."""


@dataclass(frozen=True)
class ClusterState:
    """Current state of a cluster."""

    name: str
    exists: bool
    running: bool
    ready: bool
    message: str
    """The reason if it is not ready, for messages."""
    version: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Addresses on this machine that lead to its workloads: http, https -> host:port."""
    outdated: bool = False
    """It is ready, but `create` would change its settings."""
    obstacle: UcpError | None = None
    """Why it can't be started until somebody acts, and how; None: a start may work."""


@dataclass(frozen=True)
class ProgramHealth:
    """Current state of one program of a control plane."""

    run: str
    """Identifies the run of the program: it changes with every restart. Empty: not running."""
    message: str
    """Why it is unhealthy; empty if it is healthy."""


class ClusterProvider(Protocol):
    """Creates, keeps and deletes clusters. Every call is idempotent and has a timeout."""

    @property
    def info(self) -> ProviderInfo: ...

    def check_machine(self, clusters: int, /) -> None:
        """Check that this machine has the resources for so many clusters. Raises UcpError."""

    def preflight(self, request: ClusterRequest, *, reach: Reach = Reach.MACHINE) -> None:
        """Check everything that can be checked before the first change. Raises UcpError.

        reach: from where else the API server must be reachable.
        """

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        """Create the cluster if absent, start it if stopped, keep it if it runs.

        Returns when the admin of `kubeconfig` can work; `state` may take seconds more to be ready.
        Raises DeadlineExceeded or UcpError; a failed creation leaves nothing behind.
        """

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Stop it and keep its data. Does nothing if it is absent or stopped."""

    def delete(self, name: str, *, timeout: float = 60) -> None:
        """Delete it with its data. Does nothing if it is absent."""

    def state(self, name: str) -> ClusterState: ...

    def names(self) -> list[str]:
        """Sorted names of the clusters that exist here."""

    def remains(self, names: Collection[str], /) -> Mapping[str, str]:
        """Descriptions of what still runs of these clusters on this machine, by cluster.

        For callers that have stopped them; works even if somebody else deleted their data.
        """

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """An admin kubeconfig with certificates inlined. Raises UcpError if there is none.

        Its only context is named like the cluster; reach: from where it will be used.
        """


class NodeImages(Protocol):
    """Loads images of this machine into the nodes of a cluster."""

    def save(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Save images for `load` while their cluster is being created. Raises UcpError."""

    def load(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Load those that the nodes don't have. Raises UcpError."""


class ImageLoader(ClusterProvider, Protocol):
    """A provider with the trait `loads_images`."""

    @property
    def images(self) -> NodeImages: ...


@dataclass(frozen=True)
class InterruptedUpgrade:
    """An upgrade that was neither settled nor rolled back. Tool -> entry in the cache."""

    before: Mapping[str, str]
    now: Mapping[str, str]
    replaced: bool
    """Whether all programs were replaced and may have run; if not, the next start undoes it."""


class UpgradingProvider(ClusterProvider, Protocol):
    """A provider with the trait `pinned_version`: clusters' programs are replaced in place."""

    def entries(self, name: str) -> Mapping[str, str]:
        """Tool -> entry in the user's cache, of a cluster's programs; empty if there is none."""

    def programs(self, name: str) -> Mapping[str, ProgramHealth]:
        """Health of each program of the control plane; empty if there is no cluster."""

    def interrupted_upgrade(self, name: str) -> InterruptedUpgrade | None:
        """The upgrade that was not completed; None if there is none. Raises UcpError."""

    def upgrade(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with this provider's programs and its own data. Raises UcpError."""

    def roll_back(self, name: str) -> None:
        """Restart a cluster with its previous programs. Does nothing if they are unknown."""

    def settle_upgrade(self, name: str) -> None:
        """Close an upgrade whose cluster is healthy; it can't be rolled back then."""


class CopyingProvider(UpgradingProvider, Protocol):
    """A provider with the trait `can_copy`."""

    def elsewhere(self, folder: Path) -> CopyingProvider:
        """A provider with the same programs, for clusters in another folder."""

    def copy(self, original: str, folder: Path, name: str, *, timeout: float = 120) -> None:
        """Create a cluster with the data of a running one, but its own keys, ports and folder.

        Raises UcpError.
        """

    def peak_megabytes(self, name: str) -> int:
        """Sum of the peak memory of each process of a cluster."""


class SeedTaker(ClusterProvider, Protocol):
    """A provider with the trait `takes_seed`."""

    def seeded_with(self, name: str) -> str:
        """Digest of the complete seed that a cluster was created with; empty if there was none."""

    def stored_crds(self, name: str) -> Mapping[str, str]:
        """A running cluster's CRDs by name, in the format of a seed. Raises UcpError."""
