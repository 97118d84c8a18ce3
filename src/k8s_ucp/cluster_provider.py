"""What a maker of clusters can do, and what a provider is like: the protocol behind all of them.

The contract is held by tests/contracts, which every provider runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Protocol

Report = Callable[[str], None]
"""Called with one line about what is going on; never with a secret."""


class Network(IntEnum):
    """Who reaches the clusters of a provider, and whom they reach; each with those before it."""

    LOOPBACK = 1
    """Programs of this machine."""
    CONTAINERS = 2
    """Containers of this machine."""
    WORLD = 3
    """Other machines; this machine's folders and loopback addresses are out of their reach."""


class Placement(Enum):
    """Where the components of a core cluster run."""

    HOST = "host"
    """As processes of this machine."""
    PODS = "pods"


@dataclass(frozen=True)
class ManagedFields:
    """Fields of a kind below spec.forProvider, and what they take of the topology."""

    kind: str
    """Or several, in the form of a kustomize selector."""
    fields: str
    """`<field>=<what>`, parted by blanks: region, area (a region without its zone), zone-a, zone-b,
    version, size, protection. Where the topology lacks it, the base's own value stays."""
    name: str = ""
    """Of the objects, likewise; empty: all."""
    network: bool = False
    """It is of the network, which another cluster or a database may bring as well."""


@dataclass(frozen=True)
class ManagedCluster:
    """What Crossplane makes of a cluster: templates/core/clusters/base/<provider>/.

    Field names are those of the packages pinned in clouds.py. They are checked against
    tests/unit/gitops/provider_fields.json, which is taken from the packages' own CRDs.
    """

    packages: tuple[str, ...]
    """Beside that of the cloud's family."""
    region: str
    """Or zone, unless the topology says so."""
    group: str
    kinds: Mapping[str, str]
    """Those of the group that vouch for a kubeconfig, and their plurals."""
    references: str
    """Fields below spec.forProvider, parted by blanks, that carry an environment's suffix like the
    names themselves; of one that ends with Ref or Refs, its name does."""
    fields: tuple[ManagedFields, ...]
    tells_authority: bool = False
    """The status of its objects says by which CA the API server is known; others hold it to be a
    secret, so that it is in the connection Secret only."""
    kubeconfig_kind: str = ""
    """A kind that writes the kubeconfig of a Cluster, makes nothing in the cloud, and knows nothing
    of the Cluster but its name; empty: the cluster writes it itself."""
    own_subnetwork: str = ""
    """A field of Cluster that goes where the network is somebody else's."""

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
        """Its network is a base of its own."""
        return any(each.network for each in self.fields)

    @property
    def has_protection(self) -> bool:
        """The cloud has a protection against deletion, which the cluster sets."""
        return any("=protection" in each.fields for each in self.fields)


@dataclass(frozen=True)
class ProviderInfo:
    """What a provider is like: everything that others decide by it. Its row is in providers.py."""

    name: str
    maker: str = ""
    """`module:function` that makes its ClusterProvider (clusters/local.py says of what); empty
    where Crossplane makes all of its clusters."""
    core: bool = False
    """Core clusters can be of it."""
    cloud: str = ""
    """That bills for its clusters, by its name in clouds.py."""
    managed: ManagedCluster | None = None
    """Of environments whose clusters Crossplane makes. Those of others are LocalClusters, for which
    the reconciler on this machine asks the maker."""
    network: Network = Network.WORLD
    placement: Placement = Placement.PODS
    """Of a core's components."""
    simulated: bool = False
    """Workloads are simulated: pods become Ready without running."""
    adopts: bool = False
    """Its clusters are other people's, found by a context of the user's kubeconfig: deleting one
    here lets it go, with all that is on it."""
    takes_seed: bool = False
    """Its clusters can be made with kinds in them; others are given theirs when they answer."""
    can_copy: bool = False
    """It can make a throwaway copy of one of its clusters."""
    loads_images: bool = False
    """Images of this machine can be copied into its nodes; other nodes pull them."""
    removed_by_stop: bool = False
    """`ucp stop` deletes its clusters; others keep their data."""
    remote: bool = False
    """Looking at its clusters means asking somebody far away, with a credential."""
    linux_only: bool = False
    unavailable: str = ""
    """`module:function` that says why its clusters can't be made on this machine, if so."""
    pinned_version: bool = False
    """Its clusters run the Kubernetes that ucp brings, and no other."""
    needs_version: str = ""
    """Why the topology has to say the version of Kubernetes, with an example; empty: it needn't."""
    keys: tuple[str, ...] = ()
    """Keys of the topology, beside version, that a cluster of it may have."""
    longest_name: int | None = None
    """Of a cluster, where it is shorter than a label."""
    tools: tuple[str, ...] = ()
    """Pinned programs that its clusters need."""
    megabytes: int = 0
    """Memory of this machine for one cluster, about."""
    create_seconds: float = 600.0
    """Within which a core cluster must be up; an image may have to be pulled."""
    access_seconds: float | None = None
    """How long an admin kubeconfig is good for; None where it lasts."""
    comment: str = ""
    """Written beside it into a new ucp.yaml."""
    offer: str = ""
    """How the wizard offers it; empty where more must be said than flags and answers can."""
    folder: str = ""
    """Of its files, in the state of a topology; its name without it."""

    @property
    def state_folder(self) -> str:
        return self.folder or self.name

    @property
    def makes_nodes(self) -> bool:
        """Environments get real nodes on this machine: their images may have to be pulled first."""
        return not (self.managed or self.simulated or self.adopts)

    @property
    def takes_traffic(self) -> bool:
        """Ports 80 and 443 of its nodes are ports of this machine's loopback interface."""
        return "ports" in self.keys


class Reach(Enum):
    """Where those are who want to reach an API server."""

    MACHINE = "machine"
    """Programs of this machine."""
    PODS = "pods"
    """Pods of the core cluster, when its components run there."""


CONTEXT, REGION, SIZE = "context", "region", "size"
"""Parameters of a request: keys of the topology."""
HTTP, HTTPS = 80, 443
"""Ports of a node on which an ingress controller takes traffic."""


@dataclass(frozen=True)
class Seed:
    """Kinds that a cluster is made with: nothing else, so that no two clusters are alike by it."""

    digest: str
    """Of the manifests from which they were applied once."""
    kinds: Mapping[str, str]
    """The CRDs by name, as a datastore holds them."""


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
    whose nodes take traffic finds free ones for 80 and 443 where none are named."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that the nodes see, read-only: path in the node -> folder."""
    seed: Seed | None = None
    """For a provider that takes one, where the cluster is new."""


@dataclass(frozen=True)
class ClusterState:
    """What is seen of a cluster now."""

    name: str
    exists: bool
    running: bool
    ready: bool
    message: str
    """The reason when not ready, in words for a person."""
    version: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where traffic for its workloads is taken in on this machine: http, https -> host:port."""
    outdated: bool = False
    """It is ready, and `create` would change how it runs."""


@dataclass(frozen=True)
class ProgramHealth:
    """One program of a control plane, as it is seen now."""

    run: str
    """Which run of it: another one means that it has ended in between. Empty: it doesn't run."""
    message: str
    """Why it isn't well, in words; empty where it is."""


class ClusterProvider(Protocol):
    """Makes, keeps and removes clusters. Every call is idempotent and has a deadline."""

    @property
    def info(self) -> ProviderInfo: ...

    def check_machine(self, clusters: int, /) -> None:
        """This machine has what so many clusters need together. Raises UcpError."""

    def preflight(self, request: ClusterRequest, *, reach: Reach = Reach.MACHINE) -> None:
        """Check everything checkable before the first change. Raises UcpError.

        reach: who else must be able to get to the API server.
        """

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        """Bring the cluster up: made if absent, started if stopped, kept if it runs.

        Returns when the admin of `kubeconfig` can work; `state` may need seconds more to be ready.
        Raises DeadlineExceeded or UcpError; a failed first creation leaves nothing behind.
        """

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Stop it and keep its data. Nothing to do when it is absent or stopped."""

    def delete(self, name: str, *, timeout: float = 60) -> None:
        """Remove it and its data. Nothing to do when it is absent."""

    def state(self, name: str) -> ClusterState: ...

    def names(self) -> list[str]:
        """Names of the clusters that exist here, sorted."""

    def remains(self, names: Collection[str], /) -> Mapping[str, str]:
        """What runs of these clusters on this machine, in words, by cluster: for who stopped them,
        also where their data was removed by somebody else."""

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """An admin kubeconfig with certificates inlined. Raises UcpError if there is none.

        Its one context is called like the cluster; reach: who is to get in with it.
        """


class NodeImages(Protocol):
    """Copies images of this machine into the nodes of a cluster."""

    def save(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Have images ready for `load` while their cluster is being made. Raises UcpError."""

    def load(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Copy them, but for those that are there already. Raises UcpError."""


class ImageLoader(ClusterProvider, Protocol):
    """A provider with the trait `loads_images`."""

    @property
    def images(self) -> NodeImages: ...


@dataclass(frozen=True)
class CutOffUpgrade:
    """An upgrade that has neither been settled nor rolled back. Tool -> entry in the cache."""

    before: Mapping[str, str]
    now: Mapping[str, str]
    exchanged: bool
    """All programs were exchanged and may have run; else whoever starts the cluster undoes it."""


class UpgradingProvider(ClusterProvider, Protocol):
    """A provider with the trait `pinned_version`: its clusters get other programs in place."""

    def entries(self, name: str) -> Mapping[str, str]:
        """Tool -> entry in the user's cache, of what a cluster runs; empty where there is none."""

    def programs(self, name: str) -> Mapping[str, ProgramHealth]:
        """Each program of its control plane, asked itself; empty where there is no cluster."""

    def cut_off(self, name: str) -> CutOffUpgrade | None:
        """The upgrade that nobody has ended; None without one. Raises UcpError."""

    def upgrade(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with this provider's programs and its own data. Raises UcpError."""

    def roll_back(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with what it ran before. Nothing to do where that is unknown."""

    def settle_upgrade(self, name: str) -> None:
        """It is well: what it ran before is forgotten."""


class CopyingProvider(UpgradingProvider, Protocol):
    """A provider with the trait `can_copy`."""

    def elsewhere(self, folder: Path) -> CopyingProvider:
        """The same programs, for clusters in another folder."""

    def copy(self, original: str, folder: Path, name: str, *, timeout: float = 120) -> None:
        """Make a cluster with all that a running one holds: own keys, own ports, another folder.

        Raises UcpError.
        """

    def peak_megabytes(self, name: str) -> int:
        """Memory that the processes of a cluster have taken at most, each on its own."""


class SeedTaker(ClusterProvider, Protocol):
    """A provider with the trait `takes_seed`."""

    def seeded_with(self, name: str) -> str:
        """The digest of the whole seed that a cluster was made with; empty without."""

    def stored_kinds(self, name: str) -> Mapping[str, str]:
        """A running cluster's CRDs by name, as a seed holds them. Raises UcpError."""
