"""State of the claims in teams' repositories on the core cluster, and why they wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import composites, is_ready, resources_of_claims
from k8s_ucp.inspect.status import claim_name, claim_reasons
from k8s_ucp.kube import Kube, KubeError


@dataclass(frozen=True)
class ClaimState:
    """state: ready, waiting, deleting, missing (from the core cluster) or unknown."""

    state: str
    why: str = ""


UNREADABLE = ClaimState("unknown", "the file can't be read")


def collect(core: Kube | None, names: Collection[str]) -> Mapping[str, ClaimState]:
    """State by `claim_name`, for all names. core: None if it does not respond."""
    try:
        if core is None:
            return _unknown(names, "the core cluster is not responding")
        claims = [each for each in composites(core) if claim_name(each) in names]
        resources = resources_of_claims(core, claims)
    except KubeError as error:
        return _unknown(names, error.message)
    return claim_states(ClusterSnapshot(core_ready=True, claims=claims, resources=resources), names)


def claim_states(snapshot: ClusterSnapshot, names: Collection[str]) -> Mapping[str, ClaimState]:
    """State of these claims, in the terms of `ucp status`. Pure."""
    claims, why = {claim_name(each): each for each in snapshot.claims}, claim_reasons(snapshot)

    def state(name: str) -> ClaimState:
        claim = claims.get(name)
        if claim is None:
            return ClaimState("missing", "not on the core cluster yet: see its Application")
        if claim["metadata"].get("deletionTimestamp"):
            return ClaimState("deleting", why.get(name, ""))
        return ClaimState("ready" if is_ready(claim) else "waiting", why.get(name, ""))

    return {name: state(name) for name in names}


def _unknown(names: Collection[str], why: str) -> Mapping[str, ClaimState]:
    return dict.fromkeys(names, ClaimState("unknown", why))
