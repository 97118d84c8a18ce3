"""Bodies of copies: created, updated, adopted and released. Pure."""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import Object, annotations_of, labels_of
from k8s_ucp.reconciler.mirrors.copies import CopySource, ObjectRef, copy_of, desired_content
from k8s_ucp.reconciler.mirrors.spec import SyncerEntry

_PARTS = {"Secret": ("data",), "ConfigMap": ("data", "binaryData")}


def build(
    ref: ObjectRef, cluster: str, topology: str, entry: SyncerEntry, source: CopySource
) -> Object:
    """A new copy, without labels and annotations of the source. Raises KeyMissing."""
    content = desired_content(source, entry)
    body: Object = {
        "apiVersion": "v1",
        "kind": ref.kind,
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": _labels(topology),
            "annotations": _annotations(ref, cluster, entry, source),
        },
        **content.data,
    }
    if content.immutable:
        body["immutable"] = True
    if ref.kind == "Secret":
        body["type"] = content.type or "Opaque"
    return body


def change(
    ref: ObjectRef,
    cluster: str,
    topology: str,
    entry: SyncerEntry,
    source: CopySource,
    version: str,
) -> list[Object]:
    """A JSON patch that corrects our copy, if it still has that resourceVersion.

    Content is replaced as a whole, so that keys added by others are removed; their labels and
    annotations stay. Raises KeyMissing.
    """
    content = desired_content(source, entry)
    steps: list[Object] = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    for part in _PARTS[ref.kind]:
        steps.append({"op": "add", "path": f"/{part}", "value": dict(content.data.get(part, {}))})
    if content.immutable:
        steps.append({"op": "add", "path": "/immutable", "value": True})
    marked = {
        "labels": _labels(topology),
        "annotations": _annotations(ref, cluster, entry, source),
    }
    if not entry.retain:
        # Removing a missing path is an error, so it is added first.
        marked["annotations"][names.DELETION_POLICY] = ""
    for part, values in marked.items():
        for name, value in values.items():
            path = f"/metadata/{part}/{name.replace('~', '~0').replace('/', '~1')}"
            steps.append({"op": "add", "path": path, "value": value})
            if not value:
                steps.append({"op": "remove", "path": path})
    return steps


def taken_over(
    live: Object,
    ref: ObjectRef,
    cluster: str,
    topology: str,
    entry: SyncerEntry,
    source: CopySource,
) -> Object:
    """An existing object, turned into the copy. Raises KeyMissing."""
    content = desired_content(source, entry)
    metadata = live["metadata"]
    notes = {**annotations_of(live), **_annotations(ref, cluster, entry, source)}
    ours = copy_of(live, cluster)
    if ours.adopted or not ours.ours:
        notes[names.ADOPTED] = "true"
    else:
        # It is our copy; the annotation was copied from elsewhere, or set by someone.
        notes.pop(names.ADOPTED, None)
    if not entry.retain:
        notes.pop(names.DELETION_POLICY, None)
    labels = {**labels_of(live), **_labels(topology)}
    others = {name: value for name, value in live.items() if name not in _PARTS[ref.kind]}
    body = {
        **others,
        "apiVersion": "v1",
        "kind": ref.kind,
        "metadata": {**metadata, "labels": labels, "annotations": notes},
        **content.data,
    }
    if content.immutable:
        body["immutable"] = True
    return body


def released(live: Object) -> Object:
    """A copy without our labels and annotations, so that it is no longer managed."""
    metadata = dict(live["metadata"])
    for part, removed in (
        ("labels", (names.MIRROR, names.MANAGED_BY)),
        (
            "annotations",
            (
                names.SYNCER,
                names.MIRROR_SOURCE,
                names.MIRROR_PLACE,
                names.DELETION_POLICY,
                names.ADOPTED,
            ),
        ),
    ):
        kept = {key: text for key, text in (metadata.get(part) or {}).items() if key not in removed}
        metadata[part] = kept
    return {**live, "metadata": metadata}


def _labels(topology: str) -> dict[str, str]:
    return {names.MANAGED_BY: names.OURS, names.MIRROR: topology}


def _annotations(
    ref: ObjectRef, cluster: str, entry: SyncerEntry, source: CopySource
) -> dict[str, str]:
    notes = {
        names.SYNCER: entry.syncer,
        names.MIRROR_SOURCE: f"{source.namespace}/{source.name}",
        names.MIRROR_PLACE: f"{cluster}/{ref.namespace}/{ref.name}",
    }
    if entry.retain:
        notes[names.DELETION_POLICY] = "Retain"
    return notes
