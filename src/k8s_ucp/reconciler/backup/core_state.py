"""State that only the core cluster has: read for the backup, and restored to a new core cluster.

Existing objects are never overwritten. What was restored is recorded in a ConfigMap of the core
cluster: from then on its own state counts, and what is deleted from it is removed from the backup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import (
    CONFIG_MAP,
    NAMESPACE,
    SECRET,
    ApiResource,
    Conflict,
    Kind,
    Kube,
    Object,
    annotations_of,
    api_groups,
    kinds_in,
    labels_of,
)
from k8s_ucp.managed.ownership import is_declared_by_us
from k8s_ucp.reconciler.access import sources
from k8s_ucp.reconciler.backup_content import EXTERNAL_NAMES, PASSWORDS, SOURCES, Backup
from k8s_ucp.reconciler.passwords import password_secret
from k8s_ucp.reconciler.runtime.conditions import is_true

_KEPT = ("type", "labels", "annotations", "data")
_NOT_KEPT = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that contains the whole Secret."""


@dataclass(frozen=True)
class CoreState:
    """kube: as admin. The namespaces: where passwords are generated, and where sources count."""

    kube: Kube
    password_namespaces: Sequence[str]
    source_namespaces: Sequence[str]
    others_too: bool = False
    """Crossplane is shared: resources that aren't ours are left out."""

    def collect(self) -> Backup:
        """The current state. Raises KubeError."""
        found = {
            _key(each): {password_secret.KEY: each["data"][password_secret.KEY]}
            for each in self._pending()
            if password_secret.KEY in (each.get("data") or {})
        }
        return Backup(found, dict(self._sources()), dict(self._external_names()))

    def lacking(self) -> list[str]:
        """Secrets that request a password and have none yet, sorted."""
        return sorted(_key(each) for each in self._pending() if password_secret.lacks(each))

    def is_deleted(self, section: str, key: str) -> bool:
        """Whether an object of this core is deleted, according to its API server by that very name.

        A kubeconfig Secret whose label a person removed counts as deleted, since nobody vouches for
        it. Labels of passwords and annotations of external names don't count, since Argo CD and
        Crossplane may add them later.
        """
        if section not in self.restored():
            return False
        if section == EXTERNAL_NAMES:
            label, namespace, name = _split_key(key)
            kind = self._managed().get(label)
            return kind is not None and self._declared(kind, namespace, name) is None
        if not self._may_restore(section, key):
            return False
        namespace, name = key.split("/")
        secret = self.kube.find(SECRET, name, namespace)
        return secret is None or (
            section == SOURCES and names.KUBECONFIG_LABEL not in labels_of(secret)
        )

    def restored(self) -> frozenset[str]:
        """Sections that were restored to this core, or had nothing to restore."""
        noted = self.kube.find(CONFIG_MAP, names.RESTORED, names.CLUSTERS_NAMESPACE)
        return frozenset((noted or {}).get("data") or {})

    def note_restored(self, step: str, *sections: str) -> None:
        """Record that from now on this core's own state counts. step: part of the field manager."""
        data = dict.fromkeys(sections, "yes")
        note = CONFIG_MAP.object(names.RESTORED, names.CLUSTERS_NAMESPACE, data=data)
        self.kube.apply(note, manager=f"k8s-ucp-{step}")

    def note_deletion(self) -> None:
        """Record that this core is being deleted, so that what it lacks is no longer a deletion."""
        self.kube.delete(CONFIG_MAP, names.RESTORED, names.CLUSTERS_NAMESPACE)

    def restore_secrets(self, backup: Backup) -> list[str]:
        """Restore passwords and sources that the core lacks; returns keys. Raises KubeError."""
        wanted = [
            *((PASSWORDS, *each) for each in backup.passwords.items()),
            *((SOURCES, *each) for each in backup.sources.items()),
        ]
        return [
            key
            for section, key, kept in wanted
            if self._may_restore(section, key) and self._restore(section, key, kept)
        ]

    def restore_external_names(self, given: Mapping[str, str]) -> frozenset[str]:
        """Set the external names of managed resources that have none yet, and mark them as ours.

        given: {`<kind>.<group>/<namespace>/<name>`: external name}. Returns those that don't exist
        yet, or had another name until now, since Crossplane may be about to write that name again.
        """
        served = self._managed()
        missing = set()
        for key, external_name in given.items():
            label, namespace, name = _split_key(key)
            kind = served.get(label)
            resource = self._declared(kind, namespace, name) if kind else None
            if kind is None or resource is None:
                missing.add(key)
                continue
            annotations = annotations_of(resource)
            named = annotations.get(names.EXTERNAL_NAME)
            if named not in (None, external_name) and not _only_composed(resource):
                continue
            # The backup proves that it is ours, so it may be deleted.
            restored = {names.EXTERNAL_NAME: external_name, names.OWNED: "true"}
            if not restored.items() <= annotations.items():
                change = {"metadata": {"annotations": restored}}
                self.kube.patch(kind, resource["metadata"]["name"], namespace, change)
            missing |= {key} if named not in (None, external_name) else set()
        return frozenset(missing)

    def managed(self) -> Iterator[tuple[str, Kind, Object]]:
        """(`<kind>.<group>`, kind, object) of the managed resources that are ours."""
        for label, kind in self._managed().items():
            for each in self.kube.list_all(kind):
                if not self.others_too or is_declared_by_us(each):
                    yield label, kind, each

    def _declared(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """The managed resource whose `_declared_name` is this name."""
        resource = self.kube.find(kind, name, namespace)
        if resource is not None and _declared_name(resource) == name:
            return resource
        items = self.kube.list_all(kind, namespace, labels=names.COMPOSITE)
        return next((each for each in items if _declared_name(each) == name), None)

    def _restore(self, section: str, key: str, kept: Mapping[str, Any]) -> bool:
        namespace, name = key.split("/")
        secret = self.kube.find(SECRET, name, namespace)
        if secret is not None and (
            section == SOURCES or password_secret.KEY in (secret.get("data") or {})
        ):
            return False
        if self.kube.find(NAMESPACE, namespace) is None:
            self.kube.apply(NAMESPACE.object(namespace))
        try:
            if section == SOURCES:
                self.kube.create(
                    SECRET.object(name, namespace, **{each: kept[each] for each in _KEPT})
                )
            else:
                # As the passwords controller, so that Argo CD and Crossplane keep their own fields.
                item = SECRET.object(name, namespace, data=dict(kept))
                self.kube.apply(item, manager=password_secret.MANAGER, force=False)
        except Conflict:
            # Someone else created it meanwhile.
            return False
        return True

    def _may_restore(self, section: str, key: str) -> bool:
        """Whether its namespace is configured; others may belong to an add-on that is disabled."""
        namespaces = self.password_namespaces if section == PASSWORDS else self.source_namespaces
        return key.partition("/")[0] in namespaces

    def _pending(self) -> Iterator[Object]:
        labels = f"{names.GENERATE}={password_secret.KEY}"
        for namespace in self.password_namespaces:
            yield from self.kube.list_all(SECRET, namespace, labels=labels)

    def _sources(self) -> Iterator[tuple[str, dict[str, object]]]:
        for namespace in self.source_namespaces:
            for each in self.kube.list_all(SECRET, namespace, labels=names.KUBECONFIG_LABEL):
                owner = sources.owner_of(each)
                kept = sources.keep_source(each)
                if kept is None or owner is None or owner.kind != "Secret":
                    continue
                metadata = each["metadata"]
                notes = metadata.get("annotations") or {}
                yield (
                    _key(each),
                    {
                        "type": each.get("type", "Opaque"),
                        "labels": metadata.get("labels") or {},
                        "annotations": {k: v for k, v in notes.items() if k != _NOT_KEPT},
                        "data": kept["data"],
                    },
                )

    def _external_names(self) -> Iterator[tuple[str, str]]:
        for label, _, each in self.managed():
            metadata = each["metadata"]
            name = annotations_of(each).get(names.EXTERNAL_NAME)
            if name and "deletionTimestamp" not in metadata and exists_outside(each):
                key = f"{metadata.get('namespace', '')}/{_declared_name(each)}"
                yield f"{label}/{key}", name

    def _managed(self) -> dict[str, Kind]:
        """Kinds of managed resources that the API server serves: {`<kind>.<group>`: kind}."""
        return {
            f"{kind.kind}.{group}": kind
            for group, versions in api_groups(self.kube).items()
            if group.endswith(sources.OWNER_GROUPS)
            for kind in kinds_in(self.kube, versions, _is_managed)
        }


def _is_managed(resource: ApiResource) -> bool:
    return "managed" in resource.categories


def exists_outside(item: Object) -> bool:
    """Whether a managed resource was created or observed in the cloud by its external name.

    Providers write the name before they create anything. Imported resources are never created, but
    observed: until then both conditions are false, and the name proves nothing.
    """
    return (
        names.CREATION_SUCCEEDED in annotations_of(item)
        or is_true(item, "Synced")
        or is_true(item, "Ready")
        or bool((item.get("status") or {}).get("atProvider"))
    )


def _only_composed(item: Object) -> bool:
    """Whether it has a name from a Composition by which nothing was created or observed yet."""
    return (
        names.COMPOSITE in labels_of(item)
        and not any(each.startswith(names.CREATION) for each in annotations_of(item))
        and not (item.get("status") or {}).get("atProvider")
    )


def _declared_name(item: Object) -> str:
    """The object's name; for composed resources, the names of their composite and their part.

    Compositions that set no name generate a random one, which differs in each core cluster.
    """
    asked = labels_of(item).get(names.COMPOSITE)
    part = annotations_of(item).get(names.COMPOSED_PART)
    return f"{asked}-{part}" if asked and part else str(item["metadata"]["name"])


def _key(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _split_key(key: str) -> tuple[str, str | None, str]:
    # The name of a part of a composite may have slashes.
    kind, namespace, name = key.split("/", 2)
    return kind, namespace or None, name
