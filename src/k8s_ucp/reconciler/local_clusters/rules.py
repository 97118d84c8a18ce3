"""Decides the next action for a LocalCluster, from its spec and the observed state. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterRequest, ClusterState
from k8s_ucp.kube import SECRET, Object, controller_reference, labels_of
from k8s_ucp.reconciler.runtime.conditions import Condition, is_true
from k8s_ucp.reconciler.runtime.settings import Settings

CREATE_FAILED = "CreateFailed"
"""Reason of Ready=False while a cluster can't be created or started; each retry keeps it."""


@dataclass(frozen=True)
class Foreign:
    """The LocalCluster is another machine's, or being deleted without our finalizer: left alone."""


@dataclass(frozen=True)
class CannotCreate:
    """The cluster can't be created; reason and message are for the condition."""

    reason: str
    message: str


@dataclass(frozen=True)
class Ensure:
    """The cluster should exist and run."""

    request: ClusterRequest
    provider: str


@dataclass(frozen=True)
class Delete:
    """The LocalCluster is being deleted, and has our finalizer."""

    provider: str


Verdict = Foreign | CannotCreate | Ensure | Delete


def classify(item: Object, settings: Settings, providers: Collection[str]) -> Verdict:
    """Whether a LocalCluster is ours, and whether to create or delete its cluster."""
    spec: Mapping[str, Any] = item["spec"]
    metadata = item["metadata"]
    if spec["machine"] != settings.machine:
        return Foreign()
    name, provider = metadata["name"], spec["provider"]
    going = bool(metadata.get("deletionTimestamp"))
    ours = names.FINALIZER in (metadata.get("finalizers") or [])
    if going and not ours:
        return Foreign()
    if name == settings.core_cluster or not name.startswith(f"{settings.topology}-"):
        # Without our finalizer nothing was created for it, so this never deletes the core cluster.
        return CannotCreate(
            "NameRefused",
            f"the name must be {settings.topology}-<environment> and differ from that "
            "of the core cluster",
        )
    if provider not in providers:
        known = ", ".join(sorted(providers)) or "none"
        return CannotCreate(
            "ProviderMissing", f"provider {provider} is not available here (available: {known})"
        )
    if going:
        return Delete(provider)
    parameters = {name: str(spec[name]) for name in ("nodes", "context") if name in spec}
    return Ensure(ClusterRequest(name, spec.get("version"), parameters), provider)


class NextAction(Enum):
    """What the control plane needs."""

    CREATE = "create"
    """Create, start or update it: one idempotent call for all of these."""
    WAIT = "wait"
    """It is starting, or the watcher is restarting its processes."""
    NOTHING = "nothing"


def next_action(
    item: Object, state: ClusterState, *, done: int, waited: float, patience: float
) -> NextAction:
    """What the control plane needs.

    done: the generation known to be applied, which the observed status may not show yet.
    waited: seconds since it was last ready; patience: seconds that the watcher has to repair it.
    """
    observed = max(done, (item.get("status") or {}).get("observedGeneration") or 0)
    if not state.exists or not state.running or state.outdated:
        return NextAction.CREATE
    if observed != item["metadata"].get("generation"):
        return NextAction.CREATE
    if not state.ready:
        return NextAction.CREATE if waited > patience else NextAction.WAIT
    return NextAction.NOTHING


class SecretState(Enum):
    """State of the kubeconfig Secret."""

    ABSENT = "absent"
    CURRENT = "current"
    OUTDATED = "outdated"
    """Ours, with different content."""
    FOREIGN = "foreign"
    """Not ours: never touched."""


def kubeconfig_secret(item: Object, config: Mapping[str, Any], version: str | None) -> Object:
    """The Secret with a LocalCluster's kubeconfig, which is deleted together with its owner."""
    metadata = item["metadata"]
    labels = {names.MANAGED_BY: names.OURS}
    for name in (names.ENVIRONMENT, names.TOPOLOGY):
        if name in labels_of(item):
            labels[name] = labels_of(item)[name]
    if version:
        labels[names.VERSION] = version
    # JSON is also YAML, and much faster to write and to read.
    text = json.dumps(config, sort_keys=True)
    return SECRET.object(
        names.kubeconfig_secret(metadata["name"]),
        metadata["namespace"],
        labels=labels,
        ownerReferences=[controller_reference(item)],
        type="Opaque",
        data={names.KUBECONFIG_KEY: base64.b64encode(text.encode()).decode()},
    )


def compare(found: Object | None, desired: Object) -> SecretState:
    """Compare the existing Secret with the desired one."""
    if found is None:
        return SecretState.ABSENT
    if not owned(found, desired["metadata"]["ownerReferences"][0]["name"]):
        return SecretState.FOREIGN
    same = (
        (found.get("data") or {}).get(names.KUBECONFIG_KEY) == desired["data"][names.KUBECONFIG_KEY]
        and found["metadata"].get("ownerReferences") == desired["metadata"]["ownerReferences"]
        and desired["metadata"]["labels"].items() <= labels_of(found).items()
    )
    return SecretState.CURRENT if same else SecretState.OUTDATED


def owned(secret: Object, cluster: str) -> bool:
    """Whether it has our label and is owned by a LocalCluster of that name, of any UID."""
    return labels_of(secret).get(names.MANAGED_BY) == names.OURS and any(
        each.get("controller") and each["kind"] == "LocalCluster" and each["name"] == cluster
        for each in secret["metadata"].get("ownerReferences") or []
    )


def deletion_blocker(
    item: Object,
    *,
    registered: bool,
    holding: Collection[str],
    waited: float,
    limit: float,
    lost: bool = False,
) -> Condition | None:
    """What delays the deletion of a cluster; None: delete it now.

    registered: our cluster Secret still exists. holding: load balancers and volumes that still
    exist.
    waited: seconds for which the controller has waited; limit: after so many, nothing delays it.
    lost: it doesn't respond, and has nothing that a drain would delete.
    """
    if lost or waited > limit:
        return None
    if registered and not is_true(item, names.DRAINED):
        return not_ready("Draining", "waiting until Argo CD has removed its Applications")
    if holding:
        return not_ready("Draining", "still exists: " + ", ".join(sorted(holding)))
    return None


def not_ready(reason: str, message: str) -> Condition:
    """Ready=False with reason and message."""
    return Condition(names.READY, "False", reason, message)


def readiness(state: ClusterState) -> Condition:
    """The condition Ready for the state that the provider reports."""
    if state.ready:
        return Condition(names.READY, "True", "Running", "the control plane is responding")
    return not_ready("NotReady", state.message or "the control plane is not responding")
