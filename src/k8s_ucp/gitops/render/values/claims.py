"""Claims: what a team requests from the platform, as files in its repository. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.values.clouds import (
    LOCAL,
    PLATFORM_CLOUDS,
    claim_providers,
    region_of,
    without_zone,
)
from k8s_ucp.gitops.render.values.databases import database_region
from k8s_ucp.names import GROUP
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Database
from k8s_ucp.topology.parts import Clouds

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Team, Topology

API_VERSION = f"{GROUP}/v1alpha1"
KINDS = {"database": "Postgres", "compute": "Compute"}
"""Kinds of claims, by the argument of the command."""
FOLDER = "claims/"
README = f"{FOLDER}README.md"
EMPTY_FOLDER: Mapping[str, bytes] = {README: b"# Claims\n"}
"""File that keeps the folder, which Argo CD reads, when the last claim is removed."""


@dataclass(frozen=True)
class ClaimRequest:
    """A requested claim. provider: a cloud, `local`, or None for the environment's own."""

    kind: str
    name: str
    size: str = "small"
    provider: str | None = None
    storage: int = 10
    version: str = "16"


def full_name(team: Team, name: str) -> str:
    """A team's claims are prefixed with its name, which also makes them unique in clouds."""
    start = f"{team.name}-"
    return name if name.startswith(start) else start + name


def claim_path(team: Team, name: str) -> str:
    """Path of a claim in the team's repository."""
    return f"{FOLDER}{full_name(team, name)}.yaml"


def claim(team: Team, environment: Environment, request: ClaimRequest) -> Mapping[str, Any]:
    """The claim object."""
    provider = request.provider or provider_of(environment)
    spec: dict[str, Any] = {
        "crossplane": {"compositionSelector": {"matchLabels": {f"{GROUP}/cloud": provider}}},
        "environment": environment.name,
        "region": _region(environment, provider),
        "size": request.size,
    }
    if request.kind == "database":
        spec |= {
            "storageGB": request.storage,
            "version": request.version,
            "deletionProtection": environment.deletion_protection,
        }
    return {
        "apiVersion": API_VERSION,
        "kind": KINDS[request.kind],
        "metadata": {"name": full_name(team, request.name), "namespace": team.namespace},
        "spec": spec,
    }


def check_is_composed(topology: Topology, environment: Environment, request: ClaimRequest) -> None:
    """Raise UsageError if nothing would ever create the requested resource."""
    provider, known = request.provider or provider_of(environment), claim_providers(topology)
    if provider != LOCAL:
        if provider not in known:
            advice = f"declare an environment on {provider}, or a database there, in ucp.yaml"
            raise UsageError(
                f"{topology.name} does not use {provider}: nothing would create the claim",
                next=f"--provider {'|'.join(known)}, or {advice}" if known else advice,
            )
        return
    if LOCAL not in known:
        raise UsageError(
            f"claims with the provider {LOCAL} need a simulated cloud",
            next=f"set clouds: {{{'|'.join(Clouds.model_fields)}: {{simulated: true}}}} in "
            f"ucp.yaml{_instead(request)}",
        )


def _instead(request: ClaimRequest) -> str:
    """Advice on databases that need no cloud."""
    if request.kind != "database":
        return ""
    item = f"{{name: {request.name}, provider: {LOCAL}}}"
    return f", or declare the database there: databases: [{item}]"


def claim_flags(topology: Topology) -> dict[str, str] | None:
    """Flags that a claim needs to be created here, by their names; None if nothing would create it.

    Without flags it is for the first environment, with the provider of that.
    """
    known, environments = claim_providers(topology), topology.spec.environments
    if not known or not environments:
        return None
    usable = [each.name for each in environments if provider_of(each) in known]
    if not usable:
        return {"provider": known[0]}
    return {} if usable[0] == environments[0].name else {"env": usable[0]}


def provider_of(environment: Environment) -> str:
    """The cloud of an environment's cluster if it supports the platform's kinds, else local."""
    cloud = PROVIDERS[environment.cluster.provider].cloud
    return cloud if cloud in PLATFORM_CLOUDS else LOCAL


def _region(environment: Environment, provider: str) -> str:
    if provider == LOCAL:
        return LOCAL
    if PROVIDERS[environment.cluster.provider].cloud == provider:
        return without_zone(region_of(environment))
    return database_region(Database(name="claim", provider=provider), environment)
