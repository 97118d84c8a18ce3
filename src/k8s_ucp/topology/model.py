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
    """Apps that run on every environment (docs/apps.md)."""
    databases: tuple[Database, ...] = ()
    """Postgres databases for apps (docs/platform.md)."""
    mirrors: tuple[Mirror, ...] = ()
    """Secrets and ConfigMaps to copy to app clusters (docs/mirrors.md)."""
    teams: tuple[Team, ...] = ()
    """Teams with a namespace, a quota and a repository each (docs/teams.md)."""
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
    """Price table for the cost lines of --plan."""
    ci: Ci | None = None
    """CI pipelines to render into the app repository."""
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

    @property
    def stopped_environments(self) -> list[str]:
        """Names of the environments that are declared as stopped: they have no cluster."""
        return [each.name for each in self.spec.environments if each.state == "stopped"]

    def app_cluster(self, environment: str) -> str:
        """Name of an environment's app cluster."""
        return f"{self.name}-{environment}"
