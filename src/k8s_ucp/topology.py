"""The topology file, `ucp.yaml`: what a user wants, checked before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")]
"""An RFC 1123 label, short enough to be a part of `<topology>-<environment>`."""

Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")]
"""An OCI tag."""


class Part(BaseModel):
    """Every part of the file: unknown keys are errors, names are written in camelCase."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CoreCluster(Part):
    provider: Literal["embedded", "kind", "gke", "existing"] = "embedded"
    version: str | None = None


class Git(Part):
    """Where the two repositories live."""

    provider: Literal["local", "url"] = "local"
    core: str | None = None
    apps: str | None = None
    branch: str = "main"
    poll: str = "30s"


class AppCluster(Part):
    provider: Literal["embedded", "kind", "existing", "gke", "eks", "aks", "digitalocean"] = (
        "embedded"
    )
    version: str | None = None


class Environment(Part):
    name: Name
    cluster: AppCluster = AppCluster()
    promotes_from: Name | None = Field(None, alias="promotesFrom")
    access: Literal["admin", "scoped"] = "admin"
    deletion_protection: bool = Field(False, alias="deletionProtection")
    state: Literal["running", "stopped"] = "running"


class App(Part):
    name: Name
    image: str
    tag: Tag
    """Only the first tag: afterwards the overlays own it."""
    hosts: tuple[str, ...] = ()
    replicas: int = Field(1, ge=0, le=1000)


class CrossplaneSettings(Part):
    poll_interval: str = Field("1m", alias="pollInterval")
    sync_interval: str = Field("1h", alias="syncInterval")
    max_reconcile_rate: int = Field(100, alias="maxReconcileRate", ge=1, le=10000)
    leader_election: bool = Field(True, alias="leaderElection")


class ReconcilerSettings(Part):
    source_namespaces: tuple[str, ...] = Field(
        ("ucp-clusters", "crossplane-system"), alias="sourceNamespaces"
    )
    token_lifetime: str = Field("24h", alias="tokenLifetime")


class Tools(Part):
    source: Literal["auto", "sources"] = "auto"


class Metadata(Part):
    name: Name


class Spec(Part):
    domain: str = "example.org"
    core: CoreCluster = CoreCluster()
    git: Git = Git()
    environments: tuple[Environment, ...] = ()
    apps: tuple[App, ...] = ()
    crossplane: CrossplaneSettings = CrossplaneSettings()
    reconciler: ReconcilerSettings = ReconcilerSettings()
    tools: Tools = Tools()


class Topology(Part):
    """A whole topology file."""

    api_version: Literal["k8s-ucp.io/v1alpha1"] = Field("k8s-ucp.io/v1alpha1", alias="apiVersion")
    kind: Literal["Topology"] = "Topology"
    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def core_cluster(self) -> str:
        """Name of the core cluster."""
        return f"{self.name}-core"

    def app_cluster(self, environment: str) -> str:
        """Name of an environment's app cluster."""
        return f"{self.name}-{environment}"


def load(path: Path) -> Topology:
    """Read and check a topology file. Raises UsageError naming line and nearest key."""
    from ruamel.yaml import YAML

    return Topology.model_validate(YAML(typ="safe", pure=True).load(path.read_text("utf-8")))
