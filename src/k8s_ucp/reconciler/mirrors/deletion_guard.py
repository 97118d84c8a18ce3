"""Being sure before a copy is removed: what a list doesn't show isn't gone for that.

Gone is what the API server itself, asked for that very name, says doesn't exist; or what it shows
as changed or being deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SYNCER, Kube, NotFound, Object
from k8s_ucp.reconciler.mirrors import copies
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef
from k8s_ucp.reconciler.mirrors.index import MirrorIndex
from k8s_ucp.reconciler.mirrors.writes import KINDS


class DeletionVerdict(Enum):
    """What stands behind a copy that no entry asks for."""

    NOTHING = "nothing"
    """It may go."""
    UNSURE = "unsure"
    """Our picture of the core isn't whole: look again."""
    KEPT = "kept"
    """Something is wrong, or the Syncer vanished without having left: nothing is removed."""


class DeletionGuard:
    """Asks the core; safe to share between threads."""

    def __init__(
        self, kube: Kube, shown: Callable[[str], Object | None], index: MirrorIndex
    ) -> None:
        """shown: a Syncer as the watch shows it."""
        self._kube = kube
        self._shown = shown
        self._index = index

    def check(self, found: Copy, cluster: str, place: ObjectRef) -> DeletionVerdict:
        """Whether a copy of ours may be removed. Raises KubeError."""
        item = self._shown(found.syncer)
        if item is None:
            return self._syncer_missing(found.syncer, cluster)
        if item["metadata"].get("deletionTimestamp"):
            return DeletionVerdict.NOTHING
        syncer = self._index.syncer(found.syncer)
        if syncer is None or syncer.generation != item["metadata"]["generation"]:
            return DeletionVerdict.UNSURE
        if syncer.mistakes:
            return DeletionVerdict.KEPT
        key = f"{place.kind}/{found.source}"
        if self._index.source(key) is not None:
            return DeletionVerdict.NOTHING
        live = self.live_source(key)
        if live is None:
            return DeletionVerdict.NOTHING
        copy_key = (cluster, str(place))
        wanted = self._index.wanted_by(copies.source_of(live), found.syncer, copy_key)
        return DeletionVerdict.UNSURE if wanted else DeletionVerdict.NOTHING

    def live_source(self, key: str) -> Object | None:
        """The source as it is now; None only if the server said that there is none."""
        kind, namespace, name = key.split("/", 2)
        try:
            found = self._kube.get(KINDS[kind], name, namespace)
        except NotFound as error:
            if f'"{name}" not found' in error.message:
                return None
            raise
        return {**found, "kind": kind}

    def syncer_gone(self, key: str) -> bool:
        """The server says that there is no such Syncer. Raises KubeError."""
        namespace, _, name = key.partition("/")
        try:
            self._kube.get(SYNCER, name, namespace)
        except NotFound as error:
            if f'"{name}" not found' in error.message:
                return True
            raise
        return False

    def _syncer_missing(self, key: str, cluster: str) -> DeletionVerdict:
        if not self.syncer_gone(key):
            return DeletionVerdict.UNSURE
        # A Syncer that left properly while the cluster was away is noted. Any other vanished with
        # its core, or by force: its copies may be all that an app has.
        return DeletionVerdict.NOTHING if key in self.left(cluster) else DeletionVerdict.KEPT

    # Syncers that left while a cluster was away.

    def left(self, cluster: str) -> set[str]:
        """Syncers whose copies are still to be removed there. Raises KubeError."""
        found = self._kube.find(CONFIG_MAP, names.MIRRORS_LEFT, names.CLUSTERS_NAMESPACE)
        return set(((found or {}).get("data") or {}).get(cluster, "").split())

    def note_left(self, cluster: str, syncers: set[str]) -> None:
        """Remember them, instead of those noted before. Raises KubeError."""
        text = " ".join(sorted(syncers))
        change = {"data": {cluster: text or None}}
        try:
            self._kube.patch(CONFIG_MAP, names.MIRRORS_LEFT, names.CLUSTERS_NAMESPACE, change)
        except NotFound:
            if not text:
                return
            note = CONFIG_MAP.object(
                names.MIRRORS_LEFT,
                names.CLUSTERS_NAMESPACE,
                labels={names.MANAGED_BY: names.OURS},
                data={cluster: text},
            )
            self._kube.create(note)
