"""Decides whether to register, renew, keep or deregister a cluster. Pure.

The most important rule: a cluster is deregistered only if its owner is deleted or being deleted. If
the cluster doesn't respond, the kubeconfig becomes unusable or the environment is no longer listed,
the registration is kept and the problem is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, NoAccess
from k8s_ucp.reconciler.access.cluster_secret import Registration, desired_access
from k8s_ucp.reconciler.access.kubeconfig_verification import address
from k8s_ucp.reconciler.access.sources import Fate, KubeconfigSource
from k8s_ucp.reconciler.runtime.settings import Settings


@dataclass(frozen=True)
class Reserved:
    """Names and addresses of the core cluster: an app cluster with these would end its GitOps."""

    names: frozenset[str] = frozenset()
    addresses: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, core: str, server: str) -> Reserved:
        """core: name of the core cluster; server: URL by which we reach its API server."""
        inside = [f"https://{each}" for each in _INSIDE]
        return cls(frozenset({"in-cluster", core}), frozenset(map(address, [*inside, server])))


_INSIDE = (
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default",
    "kubernetes",
)


@dataclass(frozen=True)
class Observation:
    """Input of a decision about one source."""

    fate: Fate
    """State of the owner in `existing`, or of the source's owner."""
    source: KubeconfigSource | None
    """None: the kubeconfig Secret does not exist."""
    auth_info: AuthInfo | NoAccess | None
    """The parsed kubeconfig, or why it can't be used."""
    environments: frozenset[str]
    holders: Mapping[str, str]
    """Environments that other sources hold: environment -> cluster."""
    existing: Registration | None
    now: float
    forgotten: bool = False
    """`ucp clusters forget` or `ucp destroy` annotated the owner or the cluster Secret."""
    destroyed: bool = False
    """It was `ucp destroy`, which has not ended yet."""
    reserved: Reserved = field(default_factory=Reserved)
    ours: bool = True
    """Whether `existing`, if it is ours, was registered from this source."""


@dataclass(frozen=True)
class NoAction:
    """Nothing to do, and nothing to report."""


@dataclass(frozen=True)
class Deregister:
    """Drain and deregister the cluster."""

    existing: Registration
    owner_deleted: bool
    """The owner no longer exists, so that the cluster Secret is deleted at the end."""
    forgotten: bool = False
    """By `ucp clusters forget`, so that it isn't expected to respond."""

    @property
    def is_known_dead(self) -> bool:
        """Whether its silence is expected: a person forgot it, or its owner has deleted it.

        If a person deleted a labeled kubeconfig Secret, the cluster may still be alive.
        """
        owner = self.existing.owner
        return self.forgotten or (
            self.owner_deleted and owner is not None and owner.kind != "Secret"
        )


@dataclass(frozen=True)
class Refuse:
    """Not registered, for a reason; an existing registration (`standing`) is kept."""

    reason: str
    message: str
    standing: bool


@dataclass(frozen=True)
class Register:
    """Create the two identities, request a token and write the cluster Secret."""

    source: KubeconfigSource
    auth_info: AuthInfo
    existing: Registration | None
    why: str


@dataclass(frozen=True)
class Relabel:
    """The access is current, the labels are not."""

    source: KubeconfigSource
    existing: Registration


@dataclass(frozen=True)
class Keep:
    """Nothing to do until `renew_at` (seconds since the epoch)."""

    source: KubeconfigSource
    auth_info: AuthInfo
    existing: Registration


_NO_SOURCE = "the kubeconfig Secret does not exist, or no longer has a valid owner or label"

NOT_NAMED = "NotNamedByOwner"
"""Reported on the Secret, since its alleged owner may have nothing to do with it."""
OWNER_UNREADABLE = "OwnerUnreadable"
UNPROVEN = "SourceUnproven"
"""The owner's status doesn't have the address yet; retried soon."""

Decision = NoAction | Deregister | Refuse | Register | Relabel | Keep


def decide(observation: Observation) -> Decision:
    """Decide what to do about one source."""
    existing, source = observation.existing, observation.source
    # A source must not affect the registration of another source.
    ours = existing is not None and existing.ours and observation.ours
    if existing and ours and observation.forgotten:
        return Deregister(existing, owner_deleted=True, forgotten=True)
    if existing and ours and observation.fate is not Fate.ALIVE:
        return Deregister(existing, owner_deleted=observation.fate is Fate.GONE)
    if observation.fate is not Fate.ALIVE:
        return NoAction()
    if observation.forgotten:
        return _forgotten(observation)
    if source is None:
        return Refuse("KubeconfigMissing", _NO_SOURCE, standing=ours)
    if source.disowned:
        return Refuse(NOT_NAMED, source.disowned, standing=ours)
    reserved = _reserved(observation, source, standing=ours)
    if reserved:
        return reserved
    taken = _name_taken(source, existing)
    if taken:
        return taken
    return _environment_refused(observation, source) or _access(observation, source)


def _forgotten(observation: Observation) -> Refuse:
    reason, why = (
        "Forgotten",
        "deregistered by `ucp clusters forget`; `ucp clusters forget --undo` registers it again",
    )
    if observation.destroyed:
        reason, why = (
            "BeingDestroyed",
            "deregistered by a `ucp destroy` that has not ended; `ucp start` registers it again",
        )
    return Refuse(reason, why, standing=False)


def _reserved(
    observation: Observation, source: KubeconfigSource, *, standing: bool
) -> Refuse | None:
    if source.cluster in observation.reserved.names:
        return Refuse(
            "NameReserved",
            f"{source.cluster} is Argo CD's name of the core cluster; choose another name",
            standing=standing,
        )
    if (
        isinstance(observation.auth_info, AuthInfo)
        and address(observation.auth_info.server) in observation.reserved.addresses
    ):
        return Refuse(
            "AddressReserved",
            f"{observation.auth_info.server} is the core cluster, which can't be an app cluster",
            standing=standing,
        )
    return None


def why_give_up(
    leave: Deregister, settings: Settings, *, since: float, silent: float
) -> str | None:
    """Why to stop waiting for the remaining Applications of a draining cluster; None: wait.

    since: seconds for which it was drained. silent: seconds for which the cluster did not respond.
    """
    if not silent:
        limit = settings.drain_seconds
        return f"not drained within {limit:g} s" if since > limit else None
    limit = settings.gone_seconds if leave.is_known_dead else settings.dead_seconds
    # After deregistration, Argo CD removes the finalizers of Applications of the unknown cluster.
    return f"the cluster has not responded for {limit:g} s" if silent > limit else None


def _name_taken(source: KubeconfigSource, existing: Registration | None) -> Refuse | None:
    if existing is None or (existing.ours and existing.source == source.key):
        return None
    if existing.ours:
        message = f"{existing.source} has already registered a cluster with this name"
    else:
        message = (
            f"Secret {existing.name} in Argo CD's namespace already exists and was not "
            "created by ucp; delete or rename it to register this cluster"
        )
    return Refuse("NameTaken", message, standing=False)


def _environment_refused(observation: Observation, source: KubeconfigSource) -> Refuse | None:
    existing, environment = observation.existing, source.environment
    if not environment:
        return Refuse(
            "EnvironmentMissing",
            "the owner has no label k8s-ucp.io/environment",
            standing=existing is not None,
        )
    if existing and environment in (existing.environment, existing.draining):
        return None
    if environment not in observation.environments:
        known = ", ".join(sorted(observation.environments)) or "none"
        return Refuse(
            "EnvironmentUnknown",
            f"environment {environment} is not in the list of environments ({known})",
            standing=existing is not None,
        )
    holder = observation.holders.get(environment)
    if holder:
        return Refuse(
            "EnvironmentTaken",
            f"environment {environment} is already used by cluster {holder}",
            standing=existing is not None,
        )
    return None


def _access(observation: Observation, source: KubeconfigSource) -> Decision:
    existing, auth_info = observation.existing, observation.auth_info
    if isinstance(auth_info, NoAccess):
        return Refuse(auth_info.reason, auth_info.message, standing=existing is not None)
    assert auth_info is not None, "the source was read"
    if source.scoped and not source.namespaces:
        return Refuse(
            "NamespacesMissing",
            "access is scoped, but the owner's annotation k8s-ucp.io/namespaces lists "
            "no namespaces",
            standing=existing is not None,
        )
    if existing is None:
        return Register(source, auth_info, None, "new")
    if existing.owner is None or existing.owner.uid != source.owner.uid:
        return Register(source, auth_info, existing, "declared again")
    if existing.access != desired_access(source, auth_info) or existing.cluster != source.cluster:
        return Register(source, auth_info, existing, "access changed")
    if (existing.environment or existing.draining) != source.environment:
        # The fence on the cluster identifies its apps by the environment's name.
        return Register(source, auth_info, existing, "environment changed")
    if observation.now >= existing.renew_at:
        return Register(source, auth_info, existing, "token due")
    desired = (source.environment, None, dict(source.cluster_info))
    if (existing.environment, existing.draining, dict(existing.labels)) != desired:
        return Relabel(source, existing)
    return Keep(source, auth_info, existing)
