"""The parts of a topology file below `spec`, and all of their keys.

The rules between values are in rules/. The text below a field is what editors
show for it (schema.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from k8s_ucp.check_rules import RuleId
from k8s_ucp.clouds import database_providers
from k8s_ucp.names import CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE
from k8s_ucp.providers import DEFAULT, core_providers, environment_providers
from k8s_ucp.topology.values import (
    Branch,
    ChartDigest,
    ChartName,
    ChartRepository,
    ChartVersion,
    CloudEndpoint,
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
    ObjectKey,
    ObjectName,
    OneOf,
    OnePassword,
    Package,
    Path,
    PinnedImage,
    PinnedUrl,
    PostgresVersion,
    Quantity,
    Reason,
    Registry,
    Revision,
    Tag,
    TaggedImage,
    TeamUrl,
    Variable,
    Version,
    Word,
    ZoneLetter,
)


class Part(BaseModel):
    """Every part of the file: unknown keys are errors, names are written in camelCase."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Adoptable = Literal["argocd", "crossplane"]
ADOPTABLE: tuple[Adoptable, ...] = ("argocd", "crossplane")
"""Components that a cluster may have already."""


class CorePorts(Part):
    """Loopback ports of this machine that lead to a kind core."""

    http: int = Field(80, ge=1, le=65535)
    """Port for HTTP."""
    https: int = Field(443, ge=1, le=65535)
    """Port for HTTPS."""


class CoreCluster(Part):
    """Core cluster, which creates, registers and manages the app clusters."""

    provider: Annotated[str, OneOf(core_providers)] = DEFAULT
    """Provider of the cluster. embedded: processes on this machine; kind: containers."""
    context: Word | None = None
    """For existing: context of your kubeconfig."""
    region: Word | None = None
    """For gke: region or zone."""
    size: Word | None = None
    """For gke: machine type of the nodes."""
    version: Version | None = None
    """Kubernetes version. Default: that of the provider."""
    ports: CorePorts | None = None
    """For kind. Default: 80 and 443."""
    adopt: tuple[Adoptable, ...] = ()
    """For existing: components that already run on the cluster and are used unchanged."""


class Git(Part):
    """Location of the core and app repositories."""

    provider: Literal["local", "url"] = "local"
    """local: bare repositories in gitops/; url: the repositories of core and apps."""
    core: GitUrl | None = None
    """URL of the core repository, without credentials."""
    apps: GitUrl | None = None
    """URL of the app repository, without credentials."""
    branch: Branch = "main"
    """Branch to deploy."""
    auth: Name | None = None
    """Name of the credential for the repositories over http(s)."""
    read_auth: Name | None = Field(None, alias="readAuth")
    """Name of the credential with which Argo CD reads the repositories; needs no write access."""
    poll: Interval = "30s"
    """Interval at which Argo CD polls for commits."""


class AppCluster(Part):
    """Cluster of an environment."""

    provider: Annotated[str, OneOf(environment_providers)] = DEFAULT
    """Provider of the cluster."""
    context: Word | None = None
    """For existing: context of your kubeconfig."""
    region: Word | None = None
    """Cloud region or zone."""
    size: Word | None = None
    """Machine type of the nodes."""
    version: Version | None = None
    """Kubernetes version. Default: that of the provider."""
    network: Word | None = None
    """Existing cloud network. Default: a new network."""
    autopilot: bool = False
    """GKE Autopilot: Google manages the nodes."""
    zones: tuple[ZoneLetter, ZoneLetter] | None = None
    """For eks: letters of the two availability zones of the network. Default: [a, b]."""
    nodes: int | None = Field(None, ge=1, le=1000)
    """For embedded: number of simulated nodes. Default: 1."""


ManagementPolicy = Literal["*", "Observe", "Create", "Update", "Delete", "LateInitialize"]


class Environment(Part):
    """Stage of promotion with its own cluster."""

    name: Name
    cluster: AppCluster = AppCluster()
    promotes_from: Name | None = Field(None, alias="promotesFrom")
    """Environment to promote from."""
    access: Literal["admin", "scoped"] = "admin"
    """Access of Argo CD to the cluster: cluster-wide, or the apps' namespaces only."""
    deletion_protection: bool = Field(False, alias="deletionProtection")
    """Protect cluster, databases and Applications from deletion."""
    management_policies: tuple[ManagementPolicy, ...] = Field(("*",), alias="managementPolicies")
    """Crossplane management policies of the cloud resources."""
    state: Literal["running", "stopped"] = "running"
    """stopped: keep the declaration, delete the cluster."""


class Chart(Part):
    """A Helm chart of a chart repository or an OCI registry."""

    repo: ChartRepository
    """https://… with an index.yaml, or oci://registry/path."""
    name: ChartName
    version: ChartVersion
    """The exact version."""
    digest: ChartDigest | None = None
    """Digest of the chart's archive: other content under the same version is refused."""
    auth: Name | None = None
    """Name of the credential for the repository."""


AppForm = Literal["kustomize", "helm", "directory", "jsonnet"]
APP_FORMS: tuple[AppForm, ...] = ("kustomize", "helm", "directory", "jsonnet")
"""How Argo CD renders an app's files."""


DEFAULT_PORT = 8080
"""Port that the container of an app given by an image listens on."""


class App(Part):
    """App that runs on the environments, given by an image, a path, a repo or a chart."""

    name: Name
    image: Image | None = None
    """Image without its tag. With path or repo: the image whose tag promotion changes."""
    tag: Tag | None = None
    """Initial tag; afterwards it is set in the overlays."""
    path: Path | None = None
    """Folder beside ucp.yaml, or ucp:<name> for one that is shipped with ucp.
    With repo: folder in that repository."""
    repo: GitUrl | None = None
    """URL of a git repository."""
    revision: Revision | None = None
    """For repo: tag or commit to deploy."""
    auth: Name | None = None
    """For repo: name of the credential over http(s). Default: that of git.auth."""
    chart: Chart | None = None
    """Helm chart of a chart repository or an OCI registry."""
    as_: AppForm | None = Field(None, alias="as")
    """How the files are rendered. Default: detected. With repo, it has the files copied from the
    commit to the app repository; without it, a kustomization refers to those in the repo."""
    values: dict[Name, Path] = Field(default_factory=dict)
    """For Helm charts: {environment: file}, beside ucp.yaml or in the chart."""
    overlays: dict[Name, Path] = Field(default_factory=dict)
    """For kustomizations: {environment: folder}, for those that aren't overlays/<name>."""
    namespace: Namespace | None = None
    """Namespace that it runs in. Default: the app's name."""
    namespaces: tuple[Namespace, ...] = ()
    """Additional namespaces that it may write to."""
    cluster_kinds: tuple[Kind, ...] = Field((), alias="clusterKinds")
    """Cluster-scoped kinds that it may create, such as ClusterRole. Default: none."""
    from_outside: tuple[ObjectKey, ...] = Field((), alias="fromOutside")
    """Secrets and ConfigMaps that something else creates in its namespace, as Kind/name."""
    hosts: tuple[Host, ...] = ()
    """Host names, prefixed to <environment>.<domain>."""
    replicas: int = Field(1, ge=0, le=1000)
    """For image: initial number of pods; afterwards it is set in the overlays."""
    port: int = Field(DEFAULT_PORT, ge=1, le=65535)
    """For image: port that the container listens on; it is also its variable PORT."""
    database: Name | None = None
    """Name of a database; its connection is in the Secret `database` of the app's namespace."""

    @property
    def form(self) -> Literal["image", "path", "repo", "chart"]:
        """Where the app comes from; a source with manifests takes precedence over an image."""
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
    """Postgres database for apps, in each of its environments.

    Its connection: Secret `<name>-<environment>-connection` in ucp-clusters with endpoint, port,
    username, password and database.
    """

    name: Name
    provider: Annotated[str, OneOf(database_providers)]
    """Provider of the database. gcp: Cloud SQL; aws: RDS; local: a pod of the environment's
    cluster, or a placeholder connection where workloads are simulated."""
    size: Literal["small", "medium", "large"] = "small"
    """Size of the database server; for gcp and aws."""
    storage_gb: int = Field(10, alias="storageGB", ge=10, le=65536)
    """Gigabytes of storage."""
    version: PostgresVersion = "16"
    """Major version of Postgres."""
    region: Word | None = None
    """Cloud region. Default: that of the environment's cluster."""
    image: TaggedImage | None = None
    """For local: image compatible with `postgres`. Default: a pinned one of the version."""
    environments: tuple[Name, ...] = ()
    """Environments with this database. Default: all."""


class TeamQuota(Part):
    """Limits of what a team may use."""

    claims: int = Field(10, ge=0, le=1000)
    """Number of claims of each kind."""
    cpu: Quantity = "4"
    """Requested CPU of its pods, on each environment."""
    memory: Quantity = "8Gi"
    """Memory of its pods, on each environment."""
    pods: int = Field(30, ge=0, le=10000)
    """Number of pods, on each environment."""


class Team(Part):
    """Team with a repository of its own for claims and apps.

    It acts in the namespace team-<name> of the core cluster and of each environment.
    """

    name: Name
    repo: TeamUrl | None = None
    """URL of its repository, without credentials. Default: a local one in gitops/."""
    quota: TeamQuota = TeamQuota()

    @property
    def namespace(self) -> str:
        """Its namespace, on every cluster."""
        return f"team-{self.name}"


MirrorKind = Literal["secret", "configmap"]


class MirrorSource(Part):
    """Objects to copy from the core cluster: by name or by labels."""

    namespace: ObjectName
    """Namespace of the objects on the core cluster."""
    name: ObjectName | None = None
    """Name of the object to copy."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Copy all objects with these labels."""
    kind: MirrorKind = "secret"
    """Kind of the objects."""


class MirrorTargets(Part):
    """Targets of the copies."""

    namespace: ObjectName
    """Namespace of the copies; created if it does not exist."""
    environments: tuple[Name, ...] = ()
    """Environments to copy to. Default: all."""
    name: ObjectName | None = None
    """Name of the copy. Default: name of the source."""
    keys: dict[DataKey, DataKey] = Field(default_factory=dict)
    """Keys to copy: {key of the copy: key of the source}."""


class Mirror(Part):
    """Secrets and ConfigMaps of the core cluster to copy to app clusters (a Syncer)."""

    name: Name
    source: MirrorSource
    targets: MirrorTargets
    deletion_policy: Literal["Delete", "Retain"] = Field("Delete", alias="deletionPolicy")
    """Delete or retain the copies when the mirror is removed."""
    conflict_policy: Literal["Refuse", "Adopt"] = Field("Refuse", alias="conflictPolicy")
    """Refuse or adopt an existing object that has the name of the copy."""


class Addons(Part):
    """Add-ons installed in addition to Argo CD and Crossplane."""

    ingress: Literal["traefik", "nginx", "gateway", "none"] | None = None
    """Ingress controller. Default: traefik, or none where workloads are simulated."""
    prometheus: bool = False
    """kube-prometheus-stack with Grafana."""
    loki: bool = False
    """Loki, with Alloy to collect the pods' logs."""
    external_dns: bool = Field(False, alias="external-dns")
    """Manages the DNS records of hosts."""
    argo_rollouts: bool = Field(False, alias="argo-rollouts")
    """Apps given by image become Rollouts with canary steps."""
    velero: bool = False
    """Backups of clusters (docs/platform.md)."""


Policy = Literal[
    "pinned-images",
    "required-requests",
    "no-remote-probes",
    "no-taken-hosts",
    "no-host-access",
    "no-host-ports",
    "no-added-capabilities",
    "no-ephemeral-containers",
    "no-lasting-tokens",
    "no-release-deletion",
]


class GuardRails(Part):
    """Mode of the policies per environment: {environment: warn | deny}."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Literal["warn", "deny"]] = Field(init=False)

    off: tuple[Policy, ...] = ()
    """Names of disabled policies."""


class CrossplanePackages(Part):
    """Crossplane packages in addition to those that the clouds in use need."""

    providers: tuple[Package, ...] = ()
    """Provider packages, with version or digest."""
    configurations: tuple[Package, ...] = ()
    """Configuration packages, with version or digest."""
    functions: tuple[Package, ...] = ()
    """Function packages, with version or digest."""


class Limits(Part):
    """Resource limits of a pod."""

    cpu: Quantity | None = None
    """Limit of CPU. Default: none."""
    memory: Quantity | None = None
    """Limit of memory. Default: none."""


class CrossplaneSettings(Part):
    """Settings of Crossplane."""

    poll_interval: Interval = Field("1m", alias="pollInterval")
    """How often each resource is checked for drift (--poll-interval)."""
    sync_interval: Interval = Field("1h", alias="syncInterval")
    """How often all resources are checked again (--sync-interval)."""
    max_reconcile_rate: int = Field(100, alias="maxReconcileRate", ge=1, le=10000)
    """Maximum number of concurrent reconciliations (--max-concurrent-reconciles)."""
    leader_election: bool = Field(True, alias="leaderElection")
    """Elect a leader; effective where Crossplane runs in pods."""
    rbac_manager: bool = Field(True, alias="rbacManager")
    """Run the RBAC manager; effective where Crossplane runs in pods."""
    realtime_compositions: bool = Field(True, alias="realtimeCompositions")
    """Reconcile composites on changes of their resources instead of by polling."""
    packages: CrossplanePackages = CrossplanePackages()
    """Crossplane packages; they need a core cluster that runs pods."""
    limits: Limits = Limits()
    """Resource limits of Crossplane's pod."""
    version: Version | None = None
    """Required version; ucp refuses to start if it installs another one."""


class ArgoCDSettings(Part):
    version: Version | None = None
    """Required version; ucp refuses to start if it installs another one."""


class ReconcilerSettings(Part):
    image: PinnedImage | None = None
    """Reconciler image by digest, for cores that can't build it."""
    source_namespaces: tuple[Name, ...] = Field(
        (CLUSTERS_NAMESPACE, CROSSPLANE_NAMESPACE), alias="sourceNamespaces"
    )
    """Namespaces of the core cluster to read kubeconfig Secrets and Syncers from."""
    sources_by_name: bool = Field(False, alias="sourcesByName")
    """Register kubeconfig Secrets of these namespaces without owner or label if their name contains
    -k8s-<environment>."""
    token_lifetime: Lifetime = Field("24h", alias="tokenLifetime")
    """Lifetime of Argo CD's tokens for app clusters."""


class CredentialSource(Part):
    """Source of a credential: exactly one of the keys."""

    file: Path | None = None
    """File in the workspace. Default: creds/<name>, such as creds/gcp.json."""
    env: Variable | None = None
    """Name of an environment variable."""
    onepassword: OnePassword | None = None
    """Reference for the 1Password CLI."""


class GcpCredentialSource(CredentialSource):
    project: Word | None = None
    """Id of the Google Cloud project for all resources; required if gcp is in use."""


class AwsCredentialSource(CredentialSource):
    endpoint: CloudEndpoint | None = None
    """Endpoint for all AWS services, such as your own moto server. Default: those of AWS."""


class Credentials(Part):
    """Credentials of clouds, and of git by the names used in `git.auth` and `git.readAuth`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, CredentialSource] = Field(init=False)

    gcp: GcpCredentialSource | None = None
    """Google Cloud: key of a service account (JSON)."""
    aws: AwsCredentialSource | None = None
    """AWS: access key."""
    azure: CredentialSource | None = None
    """Azure: service principal."""
    digitalocean: CredentialSource | None = None
    """DigitalOcean: API token."""


class CloudSettings(Part):
    simulated: bool = False
    """Simulate the cloud on this machine, without an account (docs/cloud.md)."""


class Clouds(Part):
    """How clouds are reached. Default: with your account."""

    aws: CloudSettings = CloudSettings()
    """AWS; simulated only with an embedded core."""

    @property
    def simulated(self) -> tuple[str, ...]:
        """Names of those that are simulated."""
        return tuple(name for name in type(self).model_fields if getattr(self, name).simulated)


class Images(Part):
    """Sources of images if registries are not reachable."""

    mirror: Registry | None = None
    """Registry with copies of the component images and kind's node image: host[:port][/path]."""
    archives: tuple[Path, ...] = ()
    """Image archives (`docker save`) to load into nodes."""
    node_image: NodeImage | None = Field(None, alias="nodeImage")
    """Node image of kind clusters."""


class IgnoreEntry(Part):
    """Findings of one rule that do not count."""

    rule: RuleId
    """Id of the rule (docs/checks.md)."""
    app: Name | None = None
    """App of the app repository; required without file."""
    file: Reason | None = None
    """Path in the repository; * stands for anything."""
    object: ObjectKey | None = None
    """Kind/name."""
    reason: Reason
    """Why: shown with the finding."""


class Checks(Part):
    """How `ucp check`, the push hook and `ucp start` judge findings (docs/checks.md)."""

    deny: tuple[Literal["warnings", RuleId], ...] = ()
    """Rules whose warnings are errors; `warnings`: all rules."""
    ignore: tuple[IgnoreEntry, ...] = ()
    """Findings that do not count, each with the reason."""


class Price(Part):
    """Price of a cluster or database. The most specific matching line counts."""

    provider: Word
    """Provider of the cluster or database."""
    size: Word | None = None
    """Its size. Default: any."""
    region: Word | None = None
    """Its region. Default: any."""
    monthly: float = Field(ge=0)
    """Price per month, in the currency."""


class Costs(Part):
    """Prices for the cost lines of --plan. Nothing is estimated without them."""

    currency: Word = "USD"
    """Currency of the prices."""
    clusters: tuple[Price, ...] = ()
    """Prices of clusters in clouds, including nodes and networks."""
    databases: tuple[Price, ...] = ()
    """Prices of databases in clouds."""


class Ci(Part):
    """CI pipelines that are rendered to the app repository."""

    provider: Literal["github", "gitlab"]
    """CI system of the app repository's forge."""
    install: PinnedUrl
    """Package or URL from which pipelines install ucp."""


class Tools(Part):
    source: Literal["auto", "sources", "releases"] = "auto"
    """Source of the pinned programs. auto: releases if reachable, otherwise built from sources."""
