"""The parts of a topology file below `spec`, and all of their keys.

The rules between values are in rules/. The text below a field is what editors
show for it (schema.py).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from k8s_ucp.topology.values import (
    Branch,
    ChartName,
    ChartRepository,
    ChartVersion,
    DataKey,
    GitUrl,
    Host,
    Image,
    Interval,
    Kind,
    LabelKey,
    LabelValue,
    Lifetime,
    Name,
    Namespace,
    NodeImage,
    ObjectName,
    OnePassword,
    Package,
    Path,
    PinnedImage,
    PinnedUrl,
    PostgresVersion,
    Quantity,
    Registry,
    Revision,
    Tag,
    Variable,
    Version,
    Word,
)

LOCAL_PROVIDERS = ("embedded", "kind", "existing")
"""Providers whose clusters are LocalCluster objects."""
CLOUD_PROVIDERS = ("gke", "eks", "aks", "digitalocean")
"""Providers whose clusters are Crossplane's managed resources."""


class Part(BaseModel):
    """Every part of the file: unknown keys are errors, names are written in camelCase."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Adoptable = Literal["argocd", "crossplane"]
ADOPTABLE: tuple[Adoptable, ...] = ("argocd", "crossplane")
"""Components that a cluster may have already."""


class CorePorts(Part):
    """Ports of this machine, on loopback, where a kind core takes traffic."""

    http: int = Field(80, ge=1, le=65535)
    https: int = Field(443, ge=1, le=65535)


class CoreCluster(Part):
    """The cluster that makes, registers and feeds the others."""

    provider: Literal["embedded", "kind", "gke", "existing"] = "embedded"
    """Who makes it. embedded: control planes as processes of this machine; kind: containers."""
    context: Word | None = None
    """For existing: the context of the kubeconfig."""
    region: Word | None = None
    """For gke: region or zone."""
    size: Word | None = None
    """For gke: machine type of the nodes."""
    version: Version | None = None
    """Version of Kubernetes; the provider's default without it."""
    ports: CorePorts | None = None
    """For kind; 80 and 443 without it."""
    adopt: tuple[Adoptable, ...] = ()
    """For existing: components that run there already and are used as they are."""


class Git(Part):
    """Where the two repositories live."""

    provider: Literal["local", "url"] = "local"
    """local: bare repositories under gitops/; url: your own, with core and apps."""
    core: GitUrl | None = None
    """URL of the core repository, without a credential."""
    apps: GitUrl | None = None
    """URL of the app repository, without a credential."""
    branch: Branch = "main"
    """The branch that is deployed."""
    auth: Name | None = None
    """Which of the credentials opens the repositories over http(s)."""
    read_auth: Name | None = Field(None, alias="readAuth")
    """Which of the credentials Argo CD reads them with; it need not be able to push."""
    poll: Interval = "30s"
    """How often Argo CD looks for commits."""


class AppCluster(Part):
    """Where an environment runs."""

    provider: Literal["embedded", "kind", "existing", "gke", "eks", "aks", "digitalocean"] = (
        "embedded"
    )
    """Who makes the cluster."""
    context: Word | None = None
    """For existing: the context of the kubeconfig."""
    region: Word | None = None
    """Region or zone of the cloud."""
    size: Word | None = None
    """Machine type of the nodes."""
    version: Version | None = None
    """Version of Kubernetes; the provider's default without it."""
    network: Word | None = None
    """An existing network of the cloud; without it one is made."""
    autopilot: bool = False
    """For gke: nodes are Google's business."""


ManagementPolicy = Literal["*", "Observe", "Create", "Update", "Delete", "LateInitialize"]


class Environment(Part):
    """A step of promotion with a cluster of its own."""

    name: Name
    cluster: AppCluster = AppCluster()
    promotes_from: Name | None = Field(None, alias="promotesFrom")
    """The environment whose tags come here."""
    access: Literal["admin", "scoped"] = "admin"
    """What Argo CD may do on the cluster: everything, or the apps' namespaces only."""
    deletion_protection: bool = Field(False, alias="deletionProtection")
    """Cluster, databases and Applications leave only by a person's hand."""
    management_policies: tuple[ManagementPolicy, ...] = Field(("*",), alias="managementPolicies")
    """What Crossplane may do with the cloud's resources."""
    state: Literal["running", "stopped"] = "running"
    """stopped: the declaration stays, the cluster goes."""


class Chart(Part):
    """A Helm chart of a chart repository or an OCI registry."""

    repo: ChartRepository
    """https://… with an index.yaml, or oci://registry/path."""
    name: ChartName
    version: ChartVersion
    """The exact version."""
    auth: Name | None = None
    """Which of the credentials opens the repository."""


AppForm = Literal["kustomize", "helm", "directory", "jsonnet"]
APP_FORMS: tuple[AppForm, ...] = ("kustomize", "helm", "directory", "jsonnet")
"""How Argo CD renders an app's files."""


class App(Part):
    """What runs on the environments: an image, or what you bring by path, repo or chart."""

    name: Name
    image: Image | None = None
    """The image without its tag. With path or repo: the one that promotion changes."""
    tag: Tag | None = None
    """Only the first tag: afterwards the overlays own it."""
    path: Path | None = None
    """A folder beside ucp.yaml, or ucp:<name> for one that comes with ucp.
    With repo: the folder in that repository."""
    repo: GitUrl | None = None
    """A git repository."""
    revision: Revision | None = None
    """For repo: a tag or a commit."""
    auth: Name | None = None
    """For repo: which of the credentials opens it over http(s); that of git.auth without it."""
    chart: Chart | None = None
    """A Helm chart of a chart repository or an OCI registry."""
    as_: AppForm | None = Field(None, alias="as")
    """How the files are rendered; detected without it. With repo: they are copied from the commit
    to the app repository; without it a kustomization there is referred to."""
    values: dict[Name, Path] = Field(default_factory=dict)
    """For Helm charts: {environment: file}, beside ucp.yaml or in the chart."""
    overlays: dict[Name, Path] = Field(default_factory=dict)
    """For kustomizations: {environment: folder}, for those that aren't overlays/<name>."""
    namespace: Namespace | None = None
    """Where it runs; the app's name without it."""
    namespaces: tuple[Namespace, ...] = ()
    """Further namespaces that it may write to."""
    cluster_kinds: tuple[Kind, ...] = Field((), alias="clusterKinds")
    """Kinds outside of namespaces that it may bring, such as ClusterRole; none without it."""
    hosts: tuple[Host, ...] = ()
    """Names in front of <environment>.<domain>."""
    replicas: int = Field(1, ge=0, le=1000)
    """For image: how many pods; afterwards the overlays own it."""
    database: Name | None = None
    """One of databases: its connection is in the Secret `database` of the app's namespace."""

    @property
    def form(self) -> Literal["image", "path", "repo", "chart"]:
        """What the app is given by: what the user brings counts more than an image."""
        if self.chart:
            return "chart"
        if self.repo:
            return "repo"
        return "path" if self.path else "image"

    @property
    def home(self) -> str:
        """The namespace that it runs in."""
        return self.namespace or self.name


class Database(Part):
    """A Postgres for apps, in each of its environments.

    Its connection: Secret `<name>-<environment>-connection` in ucp-clusters with endpoint, port,
    username, password and database.
    """

    name: Name
    provider: Literal["gcp", "aws", "local"]
    """Who makes it. gcp: Cloud SQL; aws: RDS; local: nobody, its connection is made up."""
    size: Literal["small", "medium", "large"] = "small"
    storage_gb: int = Field(10, alias="storageGB", ge=10, le=65536)
    """Gigabytes of storage."""
    version: PostgresVersion = "16"
    """Major version of Postgres."""
    region: Word | None = None
    """The cloud's region; that of the environment's cluster without it."""
    environments: tuple[Name, ...] = ()
    """Where it exists; in all environments without it."""


MirrorKind = Literal["secret", "configmap"]


class MirrorSource(Part):
    """What is copied from the core cluster: by name or by labels."""

    namespace: ObjectName
    name: ObjectName | None = None
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """All objects with these labels."""
    kind: MirrorKind = "secret"


class MirrorTargets(Part):
    """Where the copies go."""

    namespace: ObjectName
    environments: tuple[Name, ...] = ()
    """All environments without it."""
    name: ObjectName | None = None
    """Another name for the copy."""
    keys: dict[DataKey, DataKey] = Field(default_factory=dict)
    """Other names for keys: {of the copy: of the source}."""


class Mirror(Part):
    """Secrets and ConfigMaps of the core cluster that app clusters get copies of: a Syncer."""

    name: Name
    source: MirrorSource
    targets: MirrorTargets
    deletion_policy: Literal["Delete", "Retain"] = Field("Delete", alias="deletionPolicy")
    """What becomes of the copies when the mirror goes."""
    conflict_policy: Literal["Refuse", "Adopt"] = Field("Refuse", alias="conflictPolicy")
    """What happens where somebody else's object has the name."""


class Addons(Part):
    """What the platform brings beside Argo CD and Crossplane."""

    ingress: Literal["traefik", "nginx", "gateway", "none"] | None = None
    """Who serves hosts; traefik, and nothing where workloads are simulated, without it."""
    prometheus: bool = False
    """kube-prometheus-stack with Grafana."""
    loki: bool = False
    external_dns: bool = Field(False, alias="external-dns")
    """Keeps the DNS records of hosts."""
    argo_rollouts: bool = Field(False, alias="argo-rollouts")
    """Apps given by image become Rollouts with canary steps."""
    velero: bool = False


Policy = Literal[
    "pinned-images",
    "no-host-access",
    "no-host-ports",
    "no-added-capabilities",
    "no-lasting-tokens",
]


class GuardRails(Part):
    """How policies act in each environment: {environment: warn | deny}."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Literal["warn", "deny"]] = Field(init=False)

    off: tuple[Policy, ...] = ()
    """Policies that are not rendered."""


class CrossplanePackages(Part):
    """Packages of Crossplane besides those that the clouds in use need."""

    providers: tuple[Package, ...] = ()
    configurations: tuple[Package, ...] = ()
    functions: tuple[Package, ...] = ()


class Limits(Part):
    """How much a pod may take."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class CrossplaneSettings(Part):
    """Crossplane's own settings."""

    poll_interval: Interval = Field("1m", alias="pollInterval")
    sync_interval: Interval = Field("1h", alias="syncInterval")
    max_reconcile_rate: int = Field(100, alias="maxReconcileRate", ge=1, le=10000)
    leader_election: bool = Field(True, alias="leaderElection")
    rbac_manager: bool = Field(True, alias="rbacManager")
    """Takes effect where Crossplane runs in pods."""
    realtime_compositions: bool = Field(True, alias="realtimeCompositions")
    """Composites follow their parts at once, not at the next poll."""
    packages: CrossplanePackages = CrossplanePackages()
    """They run as pods, so the core has to have some."""
    limits: Limits = Limits()
    """Of Crossplane's pod, where it runs in one."""
    version: Version | None = None
    """The version that is relied on: a ucp that brings another refuses to start."""


class ArgoCDSettings(Part):
    version: Version | None = None
    """The version that is relied on: a ucp that brings another refuses to start."""


class ReconcilerSettings(Part):
    image: PinnedImage | None = None
    """For cores that can't build it: the reconciler's image by digest."""
    source_namespaces: tuple[Name, ...] = Field(
        ("ucp-clusters", "crossplane-system"), alias="sourceNamespaces"
    )
    """Namespaces of the core cluster in which kubeconfig Secrets and Syncers count."""
    sources_by_name: bool = Field(False, alias="sourcesByName")
    """There, a kubeconfig Secret with -k8s- in its name counts without an owner or a label; what
    follows is its environment."""
    token_lifetime: Lifetime = Field("24h", alias="tokenLifetime")
    """How long the tokens live that Argo CD gets into app clusters with."""


class CredentialSource(Part):
    """Where a credential comes from: one of the three."""

    file: Path | None = None
    """A file below the workspace, such as creds/gcp.json, which is looked for without it."""
    env: Variable | None = None
    """An environment variable."""
    onepassword: OnePassword | None = None
    """A reference that 1password's `op` reads."""


class GcpCredentialSource(CredentialSource):
    project: Word | None = None
    """The project that everything is made in; needed where gcp is in use."""


class Credentials(Part):
    """Of clouds, and by any other name those that `git.auth` and `git.readAuth` name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, CredentialSource] = Field(init=False)

    gcp: GcpCredentialSource | None = None
    aws: CredentialSource | None = None
    azure: CredentialSource | None = None
    digitalocean: CredentialSource | None = None


class Images(Part):
    """Where images come from when registries can't be reached."""

    mirror: Registry | None = None
    """A registry with copies of the engines' images and kind's node image: host[:port][/path]."""
    archives: tuple[Path, ...] = ()
    """Archives of images (`docker save`) that are loaded into nodes."""
    node_image: NodeImage | None = Field(None, alias="nodeImage")
    """The image of kind's nodes."""


class Ci(Part):
    """The pipelines that are rendered into the app repository."""

    provider: Literal["github", "gitlab"]
    install: PinnedUrl
    """What they install ucp from."""


class Tools(Part):
    source: Literal["auto", "sources", "releases"] = "auto"
    """Where pinned programs come from. auto: releases where they can be reached."""
