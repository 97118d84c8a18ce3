"""The API server for the managed resources of one kind."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from k8s_ucp.kube import SECRET, Conflict, Kind, Kube, Object, controller_reference
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.managed.paths import put_path
from k8s_ucp.managed.reconcile import (
    FINALIZER,
    ManagedChange,
    ReferenceMissing,
    Resolved,
    Result,
    merged,
)
from k8s_ucp.managed.references import (
    ReferenceLookup,
    ResourceReference,
    resolve,
    unresolved_lookups,
)

CONNECTION_TYPE = "connection.crossplane.io/v1alpha1"
MANAGER = "k8s-ucp-cloud"


@dataclass(frozen=True)
class KubeStore:
    """Implements reconcile.Store. kinds: kinds that references name, by name.

    secrets: {field that refers to a key of a Secret: parameter that gets its value}.
    """

    kube: Kube
    kind: Kind
    references: tuple[ResourceReference, ...]
    kinds: Mapping[str, Kind]
    secrets: Mapping[str, str]
    clock: Callable[[], float]

    def write(self, item: Object, change: ManagedChange) -> Object:
        """Raises Conflict if the object keeps changing."""
        for attempt in range(5):
            patch = _patch_for(item, change)
            if not patch:
                return item
            try:
                return self._patch(item, patch)
            except Conflict:
                if attempt == 4:
                    raise
                metadata = item["metadata"]
                item = self.kube.get(self.kind, metadata["name"], metadata.get("namespace"))
        raise AssertionError("the last attempt returns or raises")

    def resolve(self, item: Object) -> Resolved:
        found: Object = {}
        for lookup in unresolved_lookups(item, self.references):
            put_path(found, lookup.reference.field, resolve(lookup, self._candidates(lookup)))
        parameters = merged(item["spec"]["forProvider"], found)
        secrets = self._secret_values(parameters, item["metadata"].get("namespace"))
        return Resolved({**parameters, **secrets}, found)

    def publish(self, item: Object, details: Mapping[str, str]) -> None:
        """To the object's own namespace. Raises CloudFailed if the Secret isn't this object's."""
        ref = (item.get("spec") or {}).get("writeConnectionSecretToRef")
        if not ref:
            return
        metadata = item["metadata"]
        name, namespace = ref["name"], metadata.get("namespace")
        existing = self.kube.find(SECRET, name, namespace)
        data = {key: base64.b64encode(each.encode()).decode() for key, each in details.items()}
        if existing:
            owners = existing["metadata"].get("ownerReferences") or []
            if metadata["uid"] not in (each["uid"] for each in owners if each.get("controller")):
                raise CloudFailed(
                    f"connection secret {name} already exists and is not controlled by this object"
                )
            if existing.get("data") == data:
                return
        owners = [controller_reference(item)]
        secret = SECRET.object(
            name, namespace, ownerReferences=owners, type=CONNECTION_TYPE, data=data
        )
        self.kube.apply(secret, manager=MANAGER)

    def show(self, item: Object, result: Result) -> None:
        """Write a result to the status, if it differs."""
        status = item.get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions") or []}
        new = {"Synced": result.synced, "Ready": result.ready}
        for type, condition in new.items():
            if condition:
                conditions[type] = _condition(type, condition, conditions.get(type), self.now())
        desired: Object = {"conditions": list(conditions.values())}
        if result.at_provider is not None:
            desired["atProvider"] = dict(result.at_provider)
        if any(status.get(key) != value for key, value in desired.items()):
            self._patch(item, {"status": desired}, subresource="status")

    def now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="microseconds")

    def _candidates(self, lookup: ReferenceLookup) -> list[Object]:
        """Read named objects one by one, since a list would contain all others, too."""
        kind = self.kinds[lookup.reference.kind]
        if lookup.objects is None:
            labels = ",".join(f"{key}={value}" for key, value in sorted(lookup.labels.items()))
            return self.kube.list_all(kind, lookup.namespace or None, labels=labels or None)
        found = (
            self.kube.find(kind, name, namespace or None) for namespace, name in lookup.objects
        )
        return [each for each in found if each]

    def _secret_values(
        self, parameters: Mapping[str, Any], namespace: str | None
    ) -> dict[str, str]:
        values = {}
        for field, parameter in self.secrets.items():
            ref = parameters.get(field)
            if not ref:
                continue
            name, key = ref["name"], ref["key"]
            # Only from the object's own namespace, since its author may not be able to read others.
            secret = self.kube.find(SECRET, name, namespace)
            data = (secret or {}).get("data") or {}
            if key not in data:
                raise ReferenceMissing(f"Secret {name} has no key {key} yet")
            try:
                values[parameter] = base64.b64decode(data[key]).decode()
            except UnicodeDecodeError:  # Its message would quote the value.
                raise ReferenceMissing(f"the key {key} of Secret {name} is not text") from None
        return values

    def _patch(self, item: Object, change: Object, *, subresource: str = "") -> Object:
        metadata = item["metadata"]
        return self.kube.patch(
            self.kind,
            metadata["name"],
            metadata.get("namespace"),
            change,
            subresource=subresource,
        )


def _patch_for(item: Object, change: ManagedChange) -> Object:
    """The change as a merge patch; empty if it has none."""
    metadata: Object = {"annotations": dict(change.annotations)} if change.annotations else {}
    finalizers = item["metadata"].get("finalizers") or []
    if change.finalizer is not None and (FINALIZER in finalizers) is not change.finalizer:
        others = [each for each in finalizers if each != FINALIZER]
        # The patch replaces the whole list, so it is valid for this version only.
        metadata["resourceVersion"] = item["metadata"]["resourceVersion"]
        metadata["finalizers"] = [*others, FINALIZER] if change.finalizer else others
    return {
        **({"metadata": metadata} if metadata else {}),
        **({"spec": {"forProvider": dict(change.parameters)}} if change.parameters else {}),
    }


def _condition(
    type: str, condition: tuple[str, str, str], before: Mapping[str, Any] | None, now: str
) -> Object:
    status, reason, message = condition
    same = before is not None and before["status"] == status
    return {
        "type": type,
        "status": status,
        "reason": reason,
        **({"message": message} if message else {}),
        "lastTransitionTime": before["lastTransitionTime"] if same and before else now,
    }
