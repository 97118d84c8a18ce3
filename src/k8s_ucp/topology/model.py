"""What a topology file holds, whole; its parts are in parts.py."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from k8s_ucp.topology.parts import (
    Addons,
    App,
    ArgoCDSettings,
    Checks,
    Ci,
    Clouds,
    CoreCluster,
    Costs,
    Credentials,
    CrossplaneSettings,
    Database,
    Environment,
    Git,
    GuardRails,
    Images,
    Mirror,
    Part,
    ReconcilerSettings,
    Team,
    Tools,
)
from k8s_ucp.topology.values import Host, Name


class Metadata(Part):
    name: Name


class Spec(Part):
    domain: Host = "example.org"
    """Domain of the apps' hosts: <host>.<environment>.<domain>."""
    core: CoreCluster = CoreCluster()
    git: Git = Git()
    environments: tuple[Environment, ...] = ()
    """Environments, in the order of promotion."""
    apps: tuple[App, ...] = ()
    databases: tuple[Database, ...] = ()
    mirrors: tuple[Mirror, ...] = ()
    teams: tuple[Team, ...] = ()
    addons: Addons = Addons()
    guard_rails: GuardRails = Field(GuardRails(), alias="guardRails")
    crossplane: CrossplaneSettings = CrossplaneSettings()
    argocd: ArgoCDSettings = ArgoCDSettings()
    reconciler: ReconcilerSettings = ReconcilerSettings()
    credentials: Credentials = Credentials()
    clouds: Clouds = Clouds()
    images: Images = Images()
    checks: Checks = Checks()
    costs: Costs | None = None
    ci: Ci | None = None
    tools: Tools = Tools()


class Topology(Part):
    """A whole topology file."""

    api_version: Literal["k8s-ucp.io/v1alpha1"] = Field("k8s-ucp.io/v1alpha1", alias="apiVersion")
    kind: Literal["Topology"] = "Topology"
    metadata: Metadata
    spec: Spec = Spec()

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
