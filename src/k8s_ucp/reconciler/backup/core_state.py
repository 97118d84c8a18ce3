"""What the core cluster alone knows: read for the backup, and put back into a core that lost it.

Nothing that is there is written over. A core notes what was put back into it, in a ConfigMap: from
then on it speaks for its own state, and what is gone from it goes from the backup too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp import names
from k8s_ucp.backup import EXTERNAL_NAMES, PASSWORDS, SOURCES, Backup
from k8s_ucp.kube import CONFIG_MAP, NAMESPACE, SECRET, Conflict, Kind, Kube, NotFound, Object
from k8s_ucp.reconciler.access import sources
from k8s_ucp.reconciler.passwords import password_secret
from k8s_ucp.reconciler.runtime.conditions import is_true

EXTERNAL_NAME = "crossplane.io/external-name"
COMPOSITE = "crossplane.io/composite"
"""Label of what a Composition made: the name of what asked for it."""
PART = "crossplane.io/composition-resource-name"
"""Annotation of the same: which of the Composition's resources it is."""
_CREATION = "crossplane.io/external-create-"
"""Annotations of what a provider began to make."""
_SUCCEEDED = f"{_CREATION}succeeded"
_KEPT = ("type", "labels", "annotations", "data")
_NOT_KEPT = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with the whole Secret in it."""


@dataclass(frozen=True)
class CoreState:
    """kube: as admin. The namespaces: where passwords are made, and where sources count."""

    kube: Kube
    password_namespaces: Sequence[str]
    source_namespaces: Sequence[str]
    others_too: bool = False
    """Crossplane is others', and keeps resources of theirs as well: those are left out."""

    def collect(self) -> Backup:
        """What there is now. Raises KubeError."""
        found = {
            _key(each): {password_secret.KEY: each["data"][password_secret.KEY]}
            for each in self._asking()
            if password_secret.KEY in (each.get("data") or {})
        }
        return Backup(found, dict(self._sources()), dict(self._external_names()))

    def lacking(self) -> list[str]:
        """Secrets that ask for a password and have none yet, sorted."""
        return sorted(_key(each) for each in self._asking() if password_secret.lacks(each))

    def gone(self, section: str, key: str) -> bool:
        """This core had it and the API server says, for this very name, that it hasn't any more.

        A kubeconfig whose label a person took off is gone, too: nobody vouches for it. Passwords
        and names in clouds get their marks from Argo CD and Crossplane, which may come later.
        """
        if section not in self.restored():
            return False
        if section == EXTERNAL_NAMES:
            label, namespace, name = _place(key)
            kind = self._managed().get(label)
            return kind is not None and self._declared(kind, namespace, name) is None
        if not self._looked_at(section, key):
            return False
        namespace, name = key.split("/")
        there = self.kube.find(SECRET, name, namespace)
        return there is None or (
            section == SOURCES
            and names.KUBECONFIG_LABEL not in (there["metadata"].get("labels") or {})
        )

    def restored(self) -> frozenset[str]:
        """Sections that were put back into this core, or that there was nothing to put back of."""
        noted = self.kube.find(CONFIG_MAP, names.RESTORED, names.CLUSTERS_NAMESPACE)
        return frozenset((noted or {}).get("data") or {})

    def note_restored(self, step: str, *sections: str) -> None:
        """From now on this core speaks for these sections. step: who says so."""
        data = dict.fromkeys(sections, "yes")
        note = CONFIG_MAP.object(names.RESTORED, names.CLUSTERS_NAMESPACE, data=data)
        self.kube.apply(note, manager=f"k8s-ucp-{step}")

    def note_leaving(self) -> None:
        """This core is taken apart: what it lacks from now on says nothing."""
        self.kube.delete(CONFIG_MAP, names.RESTORED, names.CLUSTERS_NAMESPACE)

    def put_back_secrets(self, backup: Backup) -> list[str]:
        """Passwords and sources that this core has not; their names. Raises KubeError."""
        wanted = [
            *((PASSWORDS, *each) for each in backup.passwords.items()),
            *((SOURCES, *each) for each in backup.sources.items()),
        ]
        return [
            key
            for section, key, kept in wanted
            if self._looked_at(section, key) and self._put_back(section, key, kept)
        ]

    def put_back_names(self, given: Mapping[str, str]) -> frozenset[str]:
        """Give managed resources their names in the cloud, but for those that have one already.

        given: {`<kind>.<group>/<namespace>/<name>`: external name}. Those that aren't there yet, or
        were called otherwise until now: Crossplane may be writing that other name once more.
        """
        served = self._managed()
        missing = set()
        for key, external_name in given.items():
            label, namespace, name = _place(key)
            kind = served.get(label)
            there = self._declared(kind, namespace, name) if kind else None
            if kind is None or there is None:
                missing.add(key)
                continue
            named = (there["metadata"].get("annotations") or {}).get(EXTERNAL_NAME)
            if named is None or (named != external_name and _only_composed(there)):
                change = {"metadata": {"annotations": {EXTERNAL_NAME: external_name}}}
                self.kube.patch(kind, there["metadata"]["name"], namespace, change)
                missing |= {key} if named else set()
        return frozenset(missing)

    def managed(self) -> Iterator[tuple[str, Kind, Object]]:
        """(`<kind>.<group>`, kind, object) of the managed resources that are ours."""
        for label, kind in self._managed().items():
            for each in self.kube.list_all(kind):
                if not self.others_too or is_declared_by_us(each):
                    yield label, kind, each

    def _declared(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """The managed resource of that name, as `_declared_name` tells it."""
        there = self.kube.find(kind, name, namespace)
        if there is not None and _declared_name(there) == name:
            return there
        items = self.kube.list_all(kind, namespace, labels=COMPOSITE)
        return next((each for each in items if _declared_name(each) == name), None)

    def _put_back(self, section: str, key: str, kept: Mapping[str, Any]) -> bool:
        namespace, name = key.split("/")
        there = self.kube.find(SECRET, name, namespace)
        if there is not None and (
            section == SOURCES or password_secret.KEY in (there.get("data") or {})
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
                # As the controller that made it: what Argo CD or Crossplane add stays theirs.
                item = SECRET.object(name, namespace, data=dict(kept))
                self.kube.apply(item, manager=password_secret.MANAGER, force=False)
        except Conflict:
            # Somebody was quicker: it is there.
            return False
        return True

    def _looked_at(self, section: str, key: str) -> bool:
        """Secrets of other namespaces are nobody's at the moment: an add-on may be off."""
        looked_at = self.password_namespaces if section == PASSWORDS else self.source_namespaces
        return key.partition("/")[0] in looked_at

    def _asking(self) -> Iterator[Object]:
        asking = f"{names.GENERATE}={password_secret.KEY}"
        for namespace in self.password_namespaces:
            yield from self.kube.list_all(SECRET, namespace, labels=asking)

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
            name = (metadata.get("annotations") or {}).get(EXTERNAL_NAME)
            if name and "deletionTimestamp" not in metadata and exists_outside(each):
                place = f"{metadata.get('namespace', '')}/{_declared_name(each)}"
                yield f"{label}/{place}", name

    def _managed(self) -> dict[str, Kind]:
        """Kinds of managed resources that are served: {`<kind>.<group>`: kind}."""
        found = {}
        for group in self.kube.request("GET", "/apis")["groups"]:
            if not group["name"].endswith(sources.OWNER_GROUPS):
                continue
            version = group["preferredVersion"]["groupVersion"]
            try:
                resources = self.kube.request("GET", f"/apis/{version}")["resources"]
            except NotFound:
                continue
            for each in resources:
                if "managed" in (each.get("categories") or ()) and "/" not in each["name"]:
                    found[f"{each['kind']}.{group['name']}"] = Kind(
                        version, each["kind"], each["name"], each["namespaced"]
                    )
        return found


def exists_outside(item: Object) -> bool:
    """The cloud has had a managed resource by its name: it was created, or observed there.

    Providers write a name before they create anything. What a person imports is never created, but
    observed: until then neither of its conditions is true, and nothing is known of it.
    """
    return (
        _SUCCEEDED in (item["metadata"].get("annotations") or {})
        or is_true(item, "Synced")
        or is_true(item, "Ready")
        or bool((item.get("status") or {}).get("atProvider"))
    )


def is_declared_by_us(item: Object) -> bool:
    """A managed resource beside our clusters, or made for a kind of ours."""
    about = item["metadata"]
    owners = about.get("ownerReferences") or []
    return about.get("namespace") == names.CLUSTERS_NAMESPACE or any(
        str(each["apiVersion"]).startswith(f"{names.GROUP}/") for each in owners
    )


def _only_composed(item: Object) -> bool:
    """A Composition gave it its name, by which no provider has made or found anything yet."""
    about = item["metadata"]
    notes = about.get("annotations") or {}
    return (
        COMPOSITE in (about.get("labels") or {})
        and not any(each.startswith(_CREATION) for each in notes)
        and not (item.get("status") or {}).get("atProvider")
    )


def _declared_name(item: Object) -> str:
    """Its own, or, where a Composition made it, that of what asked for it and of its part.

    What a Composition gives no name gets a random one, another one in each core.
    """
    about = item["metadata"]
    asked = (about.get("labels") or {}).get(COMPOSITE)
    part = (about.get("annotations") or {}).get(PART)
    return f"{asked}-{part}" if asked and part else str(about["name"])


def _key(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _place(key: str) -> tuple[str, str | None, str]:
    kind, namespace, name = key.split("/")
    return kind, namespace or None, name
