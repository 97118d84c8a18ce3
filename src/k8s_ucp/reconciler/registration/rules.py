"""Decides whether to register, renew, keep or deregister a cluster. Pure.

The rule above all: only a source that is gone, or going, is deregistered. A cluster that doesn't
answer, a kubeconfig that became unusable, an environment that vanished from the list: all of these
leave the registration as it is, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, NoAccess
from k8s_ucp.reconciler.access.cluster_secret import Registration, wanted_access
from k8s_ucp.reconciler.access.kubeconfig_verification import address
from k8s_ucp.reconciler.access.sources import Fate, KubeconfigSource
from k8s_ucp.reconciler.runtime.settings import Settings


@dataclass(frozen=True)
class Reserved:
    """What Argo CD knows the core cluster by: taken by an app cluster, GitOps of the core ends."""

    names: frozenset[str] = frozenset()
    addresses: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, core: str, server: str) -> Reserved:
        """core: the core cluster's name; server: where its API server is for us."""
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
    """All that decides about one source."""

    fate: Fate
    """Of what declares the cluster that `existing` speaks of, or of the source's owner."""
    source: KubeconfigSource | None
    """None: the kubeconfig Secret isn't there."""
    auth_info: AuthInfo | NoAccess | None
    """What the kubeconfig says, or why it can't be used."""
    environments: frozenset[str]
    holders: Mapping[str, str]
    """Environments that other sources hold: environment -> cluster."""
    existing: Registration | None
    now: float
    forgotten: bool = False
    """A person said so on the owner, or on the cluster Secret."""
    reserved: Reserved = field(default_factory=Reserved)
    ours: bool = True
    """`existing`, where we made it, was made from this source and no other."""


@dataclass(frozen=True)
class NoAction:
    """There is nothing to do and nobody to tell."""


@dataclass(frozen=True)
class Deregister:
    """Drain and deregister."""

    existing: Registration
    gone: bool
    """Nothing keeps the declaration any more: the cluster Secret goes at the end."""
    forgotten: bool = False
    """A person said that it will never answer again."""

    @property
    def is_known_dead(self) -> bool:
        """Its silence is no surprise: a person said so, or what made it has removed it.

        A kubeconfig that a person deleted says nothing about the cluster.
        """
        owner = self.existing.owner
        return self.forgotten or (self.gone and owner is not None and owner.kind != "Secret")


@dataclass(frozen=True)
class Refuse:
    """Not (re)registered, with the reason; a registration that stands is left as it is."""

    reason: str
    message: str
    standing: bool


@dataclass(frozen=True)
class Register:
    """Make the two identities, take a token, write the cluster Secret."""

    source: KubeconfigSource
    auth_info: AuthInfo
    existing: Registration | None
    why: str


@dataclass(frozen=True)
class Relabel:
    """The access is right, the labels are not."""

    source: KubeconfigSource
    existing: Registration


@dataclass(frozen=True)
class Keep:
    """All is well until `renew_at` (seconds since the epoch)."""

    source: KubeconfigSource
    auth_info: AuthInfo
    existing: Registration


_NOTHING_THERE = "the kubeconfig Secret does not exist, or no longer has a valid owner or label"

NOT_NAMED = "NotNamedByOwner"
"""Said of the Secret: what it claims to belong to has nothing to do with it."""
OWNER_UNREADABLE = "OwnerUnreadable"
UNPROVEN = "SourceUnproven"
"""Its owner doesn't tell yet where the cluster is; looked at again soon."""

Decision = NoAction | Deregister | Refuse | Register | Relabel | Keep


def decide(seen: Observation) -> Decision:
    """What to do about one source."""
    existing, source = seen.existing, seen.source
    # Of another source's registration nothing is taken away on the word of this one.
    ours = existing is not None and existing.ours and seen.ours
    if existing and ours and seen.forgotten:
        return Deregister(existing, gone=True, forgotten=True)
    if existing and ours and seen.fate is not Fate.ALIVE:
        return Deregister(existing, gone=seen.fate is Fate.GONE)
    if seen.fate is not Fate.ALIVE:
        return NoAction()
    if seen.forgotten:
        return Refuse(
            "Forgotten",
            "deregistered by `ucp clusters forget`; `ucp clusters forget --undo` "
            "registers it again",
            standing=False,
        )
    if source is None:
        return Refuse("KubeconfigMissing", _NOTHING_THERE, standing=ours)
    if source.disowned:
        return Refuse(NOT_NAMED, source.disowned, standing=ours)
    reserved = _reserved(seen, source, standing=ours)
    if reserved:
        return reserved
    taken = _name_taken(source, existing)
    if taken:
        return taken
    return _environment_refused(seen, source) or _access(seen, source)


def _reserved(seen: Observation, source: KubeconfigSource, *, standing: bool) -> Refuse | None:
    if source.cluster in seen.reserved.names:
        return Refuse(
            "NameReserved",
            f"{source.cluster} is Argo CD's name of the core cluster; choose another name",
            standing=standing,
        )
    if (
        isinstance(seen.auth_info, AuthInfo)
        and address(seen.auth_info.server) in seen.reserved.addresses
    ):
        return Refuse(
            "AddressReserved",
            f"{seen.auth_info.server} is the core cluster, which can't be an app cluster",
            standing=standing,
        )
    return None


def why_give_up(
    leave: Deregister, settings: Settings, *, since: float, silent: float
) -> str | None:
    """Why Applications that are left on a leaving cluster aren't waited for any longer.

    since: seconds since the drain began; silent: for which the cluster hasn't answered. None: wait.
    """
    if not silent:
        limit = settings.drain_seconds
        return f"not drained within {limit:g} s" if since > limit else None
    limit = settings.gone_seconds if leave.is_known_dead else settings.dead_seconds
    # Argo CD drops the finalizers of Applications whose cluster it doesn't know.
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


def _environment_refused(seen: Observation, source: KubeconfigSource) -> Refuse | None:
    existing, environment = seen.existing, source.environment
    if not environment:
        return Refuse(
            "EnvironmentMissing",
            "the owner has no label k8s-ucp.io/environment",
            standing=existing is not None,
        )
    if existing and environment in (existing.environment, existing.draining):
        return None
    if environment not in seen.environments:
        known = ", ".join(sorted(seen.environments)) or "none"
        return Refuse(
            "EnvironmentUnknown",
            f"environment {environment} is not in the list of environments ({known})",
            standing=existing is not None,
        )
    holder = seen.holders.get(environment)
    if holder:
        return Refuse(
            "EnvironmentTaken",
            f"environment {environment} is already used by cluster {holder}",
            standing=existing is not None,
        )
    return None


def _access(seen: Observation, source: KubeconfigSource) -> Decision:
    existing, auth_info = seen.existing, seen.auth_info
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
    if existing.access != wanted_access(source, auth_info) or existing.cluster != source.cluster:
        return Register(source, auth_info, existing, "access changed")
    if (existing.environment or existing.draining) != source.environment:
        # The fence on the cluster knows its apps by the environment's name.
        return Register(source, auth_info, existing, "environment changed")
    if seen.now >= existing.renew_at:
        return Register(source, auth_info, existing, "token due")
    wanted = (source.environment, None, dict(source.cluster_info))
    if (existing.environment, existing.draining, dict(existing.labels)) != wanted:
        return Relabel(source, existing)
    return Keep(source, auth_info, existing)
