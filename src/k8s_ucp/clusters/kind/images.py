"""Loads images into nodes: archives of the user, and images of the container engine.

Loaded images are recorded in the nodes, so that a rerun loads only those that changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_ucp.cluster_provider import Report
from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode
from k8s_ucp.clusters.kind import program as kind_program
from k8s_ucp.clusters.kind.node_import import import_archive
from k8s_ucp.clusters.kind.nodes import KindNodes, absent
from k8s_ucp.clusters.kind.program import KindProgram
from k8s_ucp.kube import mapping_in
from k8s_ucp.workspace import make_private_folder

SECONDS = 600.0


class KindImages:
    """folder: for archives that are loaded once their cluster exists; all can be rebuilt."""

    def __init__(
        self, folder: Path, engine: ContainerEngine, program: KindProgram, nodes: KindNodes
    ) -> None:
        self._base = folder
        self._engine = engine
        self._program = program
        self._nodes = nodes

    def save(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Save images for `load` while their cluster is being created. Raises UcpError.

        Skips images that the engine does not have. Does nothing if the cluster exists already.
        """
        self.forget(cluster)
        wanted = self._here(images)
        if wanted and not self._nodes.is_made(cluster):
            report(_short(wanted))
            self._saved(cluster, wanted)

    def load(self, cluster: str, images: Iterable[str], report: Report) -> None:
        """Load images into the nodes, under the names that pods use, except those already loaded.

        Skips images that the engine does not have: nodes pull them. Raises UcpError.
        """
        nodes = self._nodes.of(cluster)
        if not nodes:
            raise absent(cluster)
        note = self._nodes.read_note(nodes[0]) or {}
        loaded = mapping_in(note, "images")
        wanted = {
            image: content
            for image, content in self._here(images).items()
            if loaded.get(image) != content
        }
        if not wanted:
            return
        report(_short(wanted))
        archive = self._saved(cluster, wanted)
        self._copy(nodes, archive, timeout=SECONDS)
        self.forget(cluster)
        self._nodes.write_note(nodes, {**note, "images": {**loaded, **wanted}})

    def load_archives(
        self,
        nodes: Sequence[ContainerNode],
        note: Mapping[str, Any],
        archives: Iterable[Path],
        report: Report,
        *,
        timeout: float,
        before_note: Callable[[], None] = lambda: None,
    ) -> None:
        """Load archives that the nodes don't have, then record that their cluster is complete.

        note: the note in the nodes so far. timeout: per archive. before_note: called before the
        record.
        """
        wanted = {str(each): kind_program.fingerprint(each) for each in archives}
        if note.get("archives") == wanted:
            return
        loaded = mapping_in(note, "archives")
        for path, known in wanted.items():
            if loaded.get(path) != known:
                report(f"loading images of {Path(path).name}")
                self._copy(nodes, Path(path), timeout=timeout)
        before_note()
        self._nodes.write_note(nodes, {**note, "archives": wanted})

    def forget(self, cluster: str) -> None:
        """Delete the archives of `save`."""
        shutil.rmtree(self._folder(cluster), ignore_errors=True)

    def _copy(self, nodes: Sequence[ContainerNode], archive: Path, *, timeout: float) -> None:
        for node in nodes:
            if not import_archive(self._engine, node, archive, timeout=timeout):
                self._program.load_archive(node.cluster, str(archive), timeout=timeout)
                return

    def _here(self, images: Iterable[str]) -> dict[str, str]:
        """Images that the engine has -> image ID."""
        found = {each: self._engine.image_id(each) for each in sorted(set(images))}
        return {image: content for image, content in found.items() if content}

    def _saved(self, cluster: str, wanted: Mapping[str, str]) -> Path:
        """An archive of exactly these images; created unless it exists."""
        known = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
        archive = self._folder(cluster) / f"{known}.tar"
        if not archive.exists():
            make_private_folder(archive.parent)
            partial = archive.with_suffix(".partial")
            self._engine.save_images(list(wanted), partial, timeout=SECONDS)
            partial.rename(archive)
        return archive

    def _folder(self, cluster: str) -> Path:
        return self._base / f"{cluster}.images"


def _short(images: Iterable[str]) -> str:
    return ", ".join(each.rpartition("/")[2] for each in images)
