"""One reconciliation of a managed resource: compare with the cloud, decide the next action.

The order is that of crossplane-runtime's managed reconciler (v2). Most important: if it is unknown
whether a creation happened, the resource is not created again. The annotation "about to create" is
written to the API server before the cloud is called.
https://github.com/crossplane/crossplane-runtime, pkg/reconciler/managed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import annotations_of
from k8s_ucp.managed.external import CloudFailed, Declared, External, ExternalObservation
from k8s_ucp.managed.policies import Policies, policies_of
from k8s_ucp.names import CREATION_FAILED, CREATION_PENDING, CREATION_SUCCEEDED, EXTERNAL_NAME
from k8s_ucp.timestamps import parse_stamp

FINALIZER = "finalizer.managedresource.crossplane.io"

Object = dict[str, Any]


class ReferenceMissing(UcpError):
    """An object that a field refers to doesn't exist, or has no name in the cloud yet."""


@dataclass(frozen=True)
class ManagedChange:
    """Changes to an object in one write, since each write makes all watchers reconcile it.

    parameters: fields of forProvider. finalizer: None leaves it unchanged.
    """

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    finalizer: bool | None = None


@dataclass(frozen=True)
class Resolved:
    """forProvider with its references resolved. found: resolved fields that the object lacks."""

    parameters: Mapping[str, Any]
    found: Mapping[str, Any] = field(default_factory=dict)


class Store(Protocol):
    """The API server, as far as one managed resource needs it."""

    def write(self, item: Object, change: ManagedChange) -> Object:
        """Write the change, whatever else changed meanwhile; skipped if it changes nothing."""

    def resolve(self, item: Object) -> Resolved:
        """Resolve references, without writing. Raises ReferenceMissing."""

    def publish(self, item: Object, details: Mapping[str, str]) -> None:
        """Write the connection Secret, if one is declared."""

    def now(self) -> str:
        """The current time as RFC 3339."""


Ready = Literal["True", "False", "Unknown"]


@dataclass(frozen=True)
class Result:
    """The new status, and when to reconcile again.

    again: "next" after a creation, "soon" while a change is in progress, "poll" if all is well,
    "backoff" after a failure, "never" until the object changes. event: (reason, message, whether it
    is a warning).
    """

    again: Literal["next", "soon", "poll", "backoff", "never"]
    synced: tuple[str, str, str] | None = None
    """(status, reason, message) of the condition Synced."""
    ready: tuple[Ready, str, str] | None = None
    """The same of the condition Ready; None leaves it unchanged."""
    at_provider: Mapping[str, Any] | None = None
    event: tuple[str, str, bool] | None = None
    deleted: bool = False
    """The finalizer was removed, so the object may no longer exist."""


_SYNCED = ("True", "ReconcileSuccess", "")
_CREATING: tuple[Ready, str, str] = ("False", "Creating", "")
_DELETING: tuple[Ready, str, str] = ("False", "Deleting", "")


def reconcile(
    item: Object,
    external: External,
    store: Store,
    *,
    connect: Callable[[Object], None] = lambda _: None,
    disconnect: Callable[[Object], None] = lambda _: None,
) -> Result:
    """Reconcile a managed resource by one step.

    connect: raises CloudFailed if the account that the object names can't be used. disconnect:
    called when it no longer needs the account, before its finalizer is removed.
    """
    policies = policies_of(item)
    if policies.paused:
        reason = "Reconciliation is paused"
        return Result("never", ("False", "ReconcilePaused", reason), event=_note("Paused", reason))
    if not policies.supported:
        named = ", ".join(sorted(policies.actions))
        return _failed("never", f"managementPolicies [{named}] can't be obeyed")
    deleted = "deletionTimestamp" in item["metadata"]
    if deleted and not policies.may("Delete"):
        disconnect(item)
        return _release(item, store)
    if not _annotation(item, EXTERNAL_NAME) and external.named_by_us:
        item = store.write(item, ManagedChange({EXTERNAL_NAME: item["metadata"]["name"]}))
    try:
        connect(item)
        if creation_is_uncertain(item):
            found = external.recover(_declared(item, _initial(item, _parameters(item))))
            if found is None:
                return _failed(
                    "never",
                    "cannot determine creation result - remove the "
                    f"{CREATION_PENDING} annotation if it is safe to proceed",
                    reason="CannotInitializeManagedResource",
                )
            ended = {CREATION_SUCCEEDED: store.now(), EXTERNAL_NAME: found}
            item = store.write(
                item, ManagedChange(ended if found else {CREATION_FAILED: store.now()})
            )
        if not deleted:
            return _create_or_update(item, external, store, policies)
        result = _delete(item, external)
        if result is None:
            disconnect(item)
            return _release(item, store)
        return result
    except (CloudFailed, ReferenceMissing) as error:
        return _failed("backoff", error.message)


def _create_or_update(item: Object, external: External, store: Store, policies: Policies) -> Result:
    resolved = store.resolve(item)
    declared = _declared(item, resolved.parameters)
    observation = external.observe(declared)
    if not observation.exists and not policies.may("Create"):
        store.write(item, ManagedChange(parameters=resolved.found))
        return _failed("backoff", "the external resource does not exist")
    if not observation.exists:
        return _create(item, external, store, declared, resolved.found, policies)
    _store_state(item, store, observation, resolved.found, policies)
    if not observation.up_to_date and policies.may("Update"):
        external.update(declared)
        return replace(
            _observed(observation), again="soon", event=_note("UpdatedExternalResource", "")
        )
    return _observed(observation)


def _store_state(
    item: Object,
    store: Store,
    observation: ExternalObservation,
    found: Mapping[str, Any],
    policies: Policies,
) -> None:
    """Store the resource's state in the object and its Secret. found: references to be written."""
    if observation.details:
        store.publish(item, observation.details)
    late = observation.late if policies.may("LateInitialize") else {}
    store.write(item, ManagedChange(parameters=merged(found, late), finalizer=True))


def _create(
    item: Object,
    external: External,
    store: Store,
    declared: Declared,
    found: Mapping[str, Any],
    policies: Policies,
) -> Result:
    """found: references, which are written before the cloud is called."""
    item = store.write(item, ManagedChange({CREATION_PENDING: store.now()}, found, finalizer=True))
    try:
        name = external.create(replace(declared, parameters=_initial(item, declared.parameters)))
    except CloudFailed as error:
        if error.certain:
            store.write(item, ManagedChange({CREATION_FAILED: store.now()}))
        return replace(
            _failed("backoff", error.message, reason="CannotCreateExternalResource"),
            ready=_CREATING,
        )
    item = store.write(item, ManagedChange({CREATION_SUCCEEDED: store.now(), EXTERNAL_NAME: name}))
    note = _note("CreatedExternalResource", "Successfully requested creation of external resource")
    created = Result("next", _SYNCED, _CREATING, event=note)
    if not external.created_synchronously:
        return created
    return _observe_created(item, external, store, replace(declared, name=name), policies, created)


def _observe_created(
    item: Object,
    external: External,
    store: Store,
    declared: Declared,
    policies: Policies,
    created: Result,
) -> Result:
    """Observe a new resource at once, which saves watchers a reconciliation.

    If it isn't ready, or that fails, nothing is reported; the next reconciliation does that.
    """
    try:
        observation = external.observe(declared)
        if not observation.exists:
            return created
        _store_state(item, store, observation, {}, policies)
        result = replace(_observed(observation), event=created.event)
        if not observation.up_to_date and policies.may("Update"):
            # Settings that the creation doesn't accept, such as the DNS of a VPC.
            external.update(declared)
            result = replace(result, again="soon")
    except CloudFailed:
        return created
    return result


def _delete(item: Object, external: External) -> Result | None:
    """Begin the deletion; None once the cloud no longer has the resource."""
    declared = _declared(item, _parameters(item))
    if not external.observe(declared).exists:
        return None
    try:
        external.delete(declared)
    except CloudFailed as error:
        failed = _failed("backoff", error.message, reason="CannotDeleteExternalResource")
        return replace(failed, ready=_DELETING)
    note = _note("DeletedExternalResource", "Successfully requested deletion of external resource")
    return Result("soon", _SYNCED, _DELETING, event=note)


def _release(item: Object, store: Store) -> Result:
    store.write(item, ManagedChange(finalizer=False))
    return Result("never", deleted=True)


def creation_is_uncertain(item: Mapping[str, Any]) -> bool:
    """Whether a creation began, and its result was not recorded."""
    noted = (CREATION_PENDING, CREATION_SUCCEEDED, CREATION_FAILED)
    pending, *ended = (parse_stamp(_annotation(item, each)) for each in noted)
    # With equal times, the failure may be of an earlier attempt.
    return pending is not None and not any(each > pending for each in ended if each)


def _observed(observation: ExternalObservation) -> Result:
    ready: tuple[Ready, str, str] = ("True", "Available", "")
    if not observation.ready:
        ready = ("False", "Unavailable", observation.why)
    again: Literal["poll", "soon"] = "poll" if observation.ready else "soon"
    return Result(again, _SYNCED, ready, observation.at_provider)


def _failed(
    again: Literal["backoff", "never"], message: str, *, reason: str = "CannotReconcile"
) -> Result:
    return Result(again, ("False", "ReconcileError", message), event=(reason, message, True))


def _note(reason: str, message: str) -> tuple[str, str, bool]:
    return reason, message or reason, False


def _declared(item: Mapping[str, Any], parameters: Mapping[str, Any]) -> Declared:
    metadata = item["metadata"]
    return Declared(
        parameters,
        _annotation(item, EXTERNAL_NAME),
        metadata["name"],
        metadata.get("namespace", ""),
        deleting="deletionTimestamp" in metadata,
    )


def _parameters(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return (item.get("spec") or {}).get("forProvider") or {}


def _initial(item: Mapping[str, Any], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of a creation, including initProvider, which later reconciliations ignore."""
    return merged((item.get("spec") or {}).get("initProvider") or {}, parameters)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees of parameters merged; `above` wins."""
    return {**below, **above} | {
        key: merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
    }


def _annotation(item: Mapping[str, Any], name: str) -> str:
    return annotations_of(item).get(name, "")
