"""Resolves references of managed resources: `vpcIdRef`, `subnetIdRefs`, `vpcIdSelector`. Pure.

https://docs.crossplane.io/latest/managed-resources/managed-resources/#referencing-other-resources
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.kube import Object, annotations_of, labels_of
from k8s_ucp.managed.paths import at_path
from k8s_ucp.managed.reconcile import ReferenceMissing
from k8s_ucp.names import EXTERNAL_NAME


@dataclass(frozen=True)
class ResourceReference:
    """A field that may refer to another managed resource, of that kind.

    field: a dotted path below forProvider.
    """

    field: str
    kind: str

    @property
    def many(self) -> bool:
        """Whether the field is a list of ids."""
        return self.field.endswith("Ids")

    @property
    def single(self) -> str:
        """The field's name without the plural, to which `Ref` or `Selector` is added."""
        return self.field[:-1] if self.many else self.field


@dataclass(frozen=True)
class ReferenceLookup:
    """Objects that a reference selects.

    objects: (namespace, name) of each; None: select by labels in `namespace`, and by controller if
    that isn't empty.
    """

    reference: ResourceReference
    objects: tuple[tuple[str, str], ...] | None
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    controller: str = ""

    def selects(self, item: Object) -> bool:
        """Whether it selects an object, which must be of the reference's kind."""
        metadata = item["metadata"]
        namespace = metadata.get("namespace", "")
        if self.objects is not None:
            return (namespace, metadata["name"]) in self.objects
        labels = labels_of(item)
        return (
            namespace == self.namespace
            and all(labels.get(key) == value for key, value in self.labels.items())
            and (not self.controller or _controller(item) == self.controller)
        )


def unresolved_lookups(
    item: Object, references: Iterable[ResourceReference]
) -> list[ReferenceLookup]:
    """References to be resolved; fields that have a value are skipped."""
    parameters = (item.get("spec") or {}).get("forProvider") or {}
    unresolved = (each for each in references if not at_path(parameters, each.field))
    return lookups_of(item, unresolved)


def lookups_of(item: Object, references: Iterable[ResourceReference]) -> list[ReferenceLookup]:
    """References of an object, to its own namespace unless they name another one."""
    own = item["metadata"].get("namespace", "")
    parameters = (item.get("spec") or {}).get("forProvider") or {}
    found = []
    for each in references:
        given = at_path(parameters, f"{each.single}Ref{'s' if each.many else ''}")
        if given:
            listed = given if each.many else [given]
            objects = tuple((ref.get("namespace") or own, ref["name"]) for ref in listed)
            found.append(ReferenceLookup(each, objects, own))
        elif selector := at_path(parameters, f"{each.single}Selector"):
            owner = _controller(item) if selector.get("matchControllerRef") else ""
            namespace = selector.get("namespace") or own
            labels = selector.get("matchLabels") or {}
            found.append(ReferenceLookup(each, None, namespace, labels, owner))
    return found


def resolve(lookup: ReferenceLookup, existing: Iterable[Object]) -> Any:
    """The value of a field: one id, or a list of ids. existing: objects of the kind.

    Raises ReferenceMissing if a selected object does not exist or has no id yet.
    """
    reference = lookup.reference
    objects = {
        (each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in existing
    }
    if lookup.objects is not None:
        for key in lookup.objects:
            if key not in objects:
                name = key[1] if key[0] == lookup.namespace else "/".join(key)
                raise ReferenceMissing(f"{reference.kind} {name} does not exist")
        chosen = [objects[key] for key in lookup.objects]
    else:
        chosen = [each for _, each in sorted(objects.items()) if lookup.selects(each)]
        if not chosen:
            labels = ", ".join(f"{key}={value}" for key, value in lookup.labels.items())
            where = f" in {lookup.namespace}" if lookup.namespace else ""
            raise ReferenceMissing(f"no {reference.kind}{where} matches {labels or 'the selector'}")
    ids = [_id(reference, each) for each in chosen]
    return ids if reference.many else ids[0]


def _controller(item: Object) -> str:
    """UID of the object's controller; "" if it has none."""
    owners = item["metadata"].get("ownerReferences") or []
    return next((each["uid"] for each in owners if each.get("controller")), "")


def _id(reference: ResourceReference, item: Object) -> str:
    status = (item.get("status") or {}).get("atProvider") or {}
    annotations = annotations_of(item)
    found = status.get("arn") if reference.field.endswith("Arn") else annotations.get(EXTERNAL_NAME)
    # A name that we assign exists before the resource; a status shows that it was observed.
    if not found or not item.get("status"):
        name = item["metadata"]["name"]
        raise ReferenceMissing(f"{reference.kind} {name} is not in the cloud yet")
    return str(found)
