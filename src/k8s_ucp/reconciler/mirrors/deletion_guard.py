"""Decides whether a copy may be deleted; an informer or a list that lacks its source is no proof.

Proof is that the API server, asked for this very name, reports that it does not exist, or shows it
as changed or being deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SYNCER, Forbidden, Kube, NotFound, Object
from k8s_ucp.reconciler.mirrors import copies
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef
from k8s_ucp.reconciler.mirrors.index import MirrorIndex
from k8s_ucp.reconciler.mirrors.writes import KINDS

_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_REFERENCE = re.compile(f"{_NAME}/{_NAME}")
"""`<namespace>/<name>`, as we write it; others on the app cluster may write any annotations."""


class DeletionVerdict(Enum):
    """Result for a copy that no entry declares any more."""

    NOTHING = "nothing"
    """Nothing requires the copy: it may be deleted."""
    UNSURE = "unsure"
    """Our view of the core cluster is incomplete: check again."""
    KEPT = "kept"
    """The Syncer is invalid, or vanished without its finalizer being handled, or we never wrote
    these annotations: the copy is kept."""


class DeletionGuard:
    """Asks the core cluster; safe to share between threads."""

    def __init__(
        self, kube: Kube, shown: Callable[[str], Object | None], index: MirrorIndex
    ) -> None:
        """shown: returns a Syncer from the informer's store."""
        self._kube = kube
        self._shown = shown
        self._index = index

    def check(self, found: Copy, cluster: str, ref: ObjectRef) -> DeletionVerdict:
        """Whether our copy may be deleted. Raises KubeError."""
        item = self._shown(found.syncer)
        if item is None:
            return self._syncer_missing(found.syncer, cluster)
        if item["metadata"].get("deletionTimestamp"):
            return DeletionVerdict.NOTHING
        syncer = self._index.syncer(found.syncer)
        if syncer is None or syncer.generation != item["metadata"]["generation"]:
            return DeletionVerdict.UNSURE
        if syncer.mistakes or not _REFERENCE.fullmatch(found.source):
            return DeletionVerdict.KEPT
        key = f"{ref.kind}/{found.source}"
        field = (ref.kind, found.source.partition("/")[0])
        if field not in {(each.kind, each.namespace) for each in syncer.entries}:
            # We may no longer read that namespace, and need not: no source there is selected.
            return DeletionVerdict.NOTHING
        if self._index.source(key) is not None:
            return DeletionVerdict.NOTHING
        live = self.live_source(key)
        if live is None:
            return DeletionVerdict.NOTHING
        copy_key = (cluster, str(ref))
        desired = self._index.is_desired_by(copies.source_of(live), found.syncer, copy_key)
        return DeletionVerdict.UNSURE if desired else DeletionVerdict.NOTHING

    def live_source(self, key: str) -> Object | None:
        """The source, read live; None only if the server reports that it does not exist."""
        kind, namespace, name = key.split("/", 2)
        try:
            found = self._kube.get(KINDS[kind], name, namespace)
        except NotFound as error:
            if f'"{name}" not found' in error.message:
                return None
            raise
        return {**found, "kind": kind}

    def syncer_is_deleted(self, key: str) -> bool | None:
        """Whether the server reports that the Syncer does not exist. Raises KubeError.

        None if it can't be one of ours: it has no valid name, or we may not read its namespace.
        """
        if not _REFERENCE.fullmatch(key):
            return None
        namespace, _, name = key.partition("/")
        try:
            self._kube.get(SYNCER, name, namespace)
        except Forbidden:
            return None
        except NotFound as error:
            if f'"{name}" not found' in error.message:
                return True
            raise
        return False

    def _syncer_missing(self, key: str, cluster: str) -> DeletionVerdict:
        deleted = self.syncer_is_deleted(key)
        if deleted is None:
            return DeletionVerdict.KEPT
        if not deleted:
            return DeletionVerdict.UNSURE
        # A Syncer that was deleted properly while the cluster was away is recorded. Any other was
        # lost with its core cluster, or deleted by force: an app may depend on its copies.
        return DeletionVerdict.NOTHING if key in self.left(cluster) else DeletionVerdict.KEPT

    # Syncers that were deleted while a cluster was away.

    def left(self, cluster: str) -> set[str]:
        """Deleted Syncers whose copies still have to be deleted on a cluster. Raises KubeError."""
        found = self._kube.find(CONFIG_MAP, names.MIRRORS_LEFT, names.CLUSTERS_NAMESPACE)
        return set(((found or {}).get("data") or {}).get(cluster, "").split())

    def note_left(self, cluster: str, syncers: set[str]) -> None:
        """Replace the record of `left` for a cluster. Raises KubeError."""
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
