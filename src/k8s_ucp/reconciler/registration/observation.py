"""Observes a source and decides on its registration; decisions are made one at a time."""

from __future__ import annotations

import threading

from k8s_ucp import names
from k8s_ucp.kube import KubeError, Object, annotations_of
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.sources import Fate, OwnerRef, owner_of
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.registration import rules
from k8s_ucp.reconciler.registration.forced_deregistration import TEARDOWN
from k8s_ucp.reconciler.registration.rules import (
    Decision,
    Keep,
    Observation,
    Register,
    Relabel,
    Reserved,
)


class Observer:
    """Collects what rules.decide needs."""

    def __init__(self, runtime: Runtime) -> None:
        self._informers = runtime.informers
        self._owners = runtime.owners
        self._clients = runtime.clients
        self._clock = runtime.clock
        self._reserved = Reserved.of(runtime.settings.core_cluster, runtime.kube.server)
        self._claims: dict[str, str] = {}
        """Environments granted to sources, which may not have been written yet, by source."""
        self._lock = threading.Lock()

    def decide(self, key: str) -> tuple[Object | None, Decision]:
        """(owner, or None if it is deleted; the decision). Raises KubeError."""
        secret = self._informers.source(key)
        ref = owner_of(secret) if secret else None
        existing = self._existing(key, ref)
        ours = existing if existing and existing.ours and existing.source == key else None
        subject = ref or (ours.owner if ours else None)
        if subject is None:
            return None, rules.NoAction()
        try:
            owner = self._owners.find(subject)
        except KubeError:
            if ours is None or not ours.forgotten:
                raise
            owner = None
        fate = _fate(owner, ours)
        source = self._clients.describe(key, owner)
        auth_info = self._clients.auth_info_or_why(source) if source else None
        # Serialized, so that two sources that claim the same environment don't both find it free.
        with self._lock:
            observation = Observation(
                fate=fate,
                source=source,
                auth_info=auth_info,
                environments=self._informers.environment_names(),
                holders=self._holders(key),
                existing=existing,
                now=self._clock(),
                forgotten=bool(_forgotten(owner)) or (ours is not None and ours.forgotten),
                destroyed=_forgotten(owner) == TEARDOWN,
                reserved=self._reserved,
                ours=ours is not None,
            )
            decision = rules.decide(observation)
            if isinstance(decision, Register | Relabel | Keep):
                self._claims[key] = decision.source.environment or ""
            else:
                self._claims.pop(key, None)
        return owner, decision

    def registered(self, key: str) -> bool:
        """Whether we wrote a cluster Secret for this source."""
        found = self._existing(key, None)
        return found is not None and found.ours

    def _existing(self, key: str, ref: OwnerRef | None) -> Registration | None:
        store = self._informers.cluster_secrets.store
        for each in store.all():
            if annotations_of(each).get(names.SOURCE) == key:
                return Registration.of(each)
        if ref is None:
            return None
        name = names.cluster_secret(ref.name.removesuffix("-kubeconfig"))
        found = store.get(f"{names.ARGOCD_NAMESPACE}/{name}")
        return Registration.of(found) if found else None

    def _holders(self, key: str) -> dict[str, str]:
        held = {
            environment: source
            for source, environment in self._claims.items()
            if environment and source != key
        }
        for each in self._informers.cluster_secrets.store.all():
            registration = Registration.of(each)
            if registration.environment and registration.source != key:
                held[registration.environment] = registration.cluster
        return held


def _forgotten(owner: Object | None) -> str | None:
    """By what the cluster was deregistered; None if it was not."""
    return annotations_of(owner).get(names.FORGET) if owner else None


def _fate(owner: Object | None, ours: Registration | None) -> Fate:
    if owner is None:
        return Fate.GONE
    metadata = owner["metadata"]
    replaced = ours is not None and ours.owner is not None and ours.owner.uid != metadata["uid"]
    if replaced and ours is not None and ours.draining:
        # The cluster was declared again during the drain of its predecessor, which has to end
        # first.
        return Fate.GONE
    return Fate.DELETING if metadata.get("deletionTimestamp") else Fate.ALIVE
