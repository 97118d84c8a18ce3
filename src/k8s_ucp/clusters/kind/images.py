"""Images that nodes are given: archives of the user's, and images that the engine has.

What was loaded is noted in the nodes, so that a rerun loads only what has changed since.
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
from k8s_ucp.workspace import make_private_folder

SECONDS = 600.0


class KindImages:
    """folder: for archives that wait until their cluster is there; all of it can be rebuilt."""

    def __init__(
        self, folder: Path, engine: ContainerEngine, program: KindProgram, nodes: KindNodes
    ) -> None:
        self._base = folder
        self._engine = engine
        self._program = program
        self._nodes = nodes

    def save(
        self, cluster: str, images: Iterable[str], report: Report, *, timeout: float = SECONDS
    ) -> None:
        """Have images ready for `load` while their cluster is being made. Raises UcpError.

        Those that the engine does not have are left out. Nothing to do for a cluster that is made.
        """
        self.forget(cluster)
        wanted = self._here(images)
        if wanted and not self._nodes.is_made(cluster):
            report(_short(wanted))
            self._saved(cluster, wanted, timeout=timeout)

    def load(
        self, cluster: str, images: Iterable[str], report: Report, *, timeout: float = SECONDS
    ) -> None:
        """Copy images into the nodes, as pods find them, but for those that are there already.

        Those that the engine does not have are left out: nodes pull them. Raises UcpError.
        """
        nodes = self._nodes.of(cluster)
        if not nodes:
            raise absent(cluster)
        note = self._nodes.read_note(nodes[0]) or {}
        there = note.get("images") or {}
        wanted = {
            image: content
            for image, content in self._here(images).items()
            if there.get(image) != content
        }
        if not wanted:
            return
        report(_short(wanted))
        archive = self._saved(cluster, wanted, timeout=timeout)
        self._copy(nodes, archive, timeout=timeout)
        self.forget(cluster)
        self._nodes.write_note(nodes, {**note, "images": {**there, **wanted}})

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
        """Load archives that the nodes don't have yet, then note that their cluster is whole.

        note: what is noted in the nodes so far. timeout: of each archive.
        """
        wanted = {str(each): kind_program.fingerprint(each) for each in archives}
        loaded = note.get("archives")
        if loaded == wanted:
            return
        for path, known in wanted.items():
            if (loaded or {}).get(path) != known:
                report(f"loading images of {Path(path).name}")
                self._copy(nodes, Path(path), timeout=timeout)
        before_note()
        self._nodes.write_note(nodes, {**note, "archives": wanted})

    def forget(self, cluster: str) -> None:
        """Remove what `save` left."""
        shutil.rmtree(self._folder(cluster), ignore_errors=True)

    def _copy(self, nodes: Sequence[ContainerNode], archive: Path, *, timeout: float) -> None:
        for node in nodes:
            if not import_archive(self._engine, node, archive, timeout=timeout):
                self._program.load_archive(node.cluster, str(archive), timeout=timeout)
                return

    def _here(self, images: Iterable[str]) -> dict[str, str]:
        """Images that the engine has, and what tells their content."""
        found = {each: self._engine.image_id(each) for each in sorted(set(images))}
        return {image: content for image, content in found.items() if content}

    def _saved(self, cluster: str, wanted: Mapping[str, str], *, timeout: float) -> Path:
        """An archive of these very images; made unless it is there."""
        known = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
        archive = self._folder(cluster) / f"{known}.tar"
        if not archive.exists():
            make_private_folder(archive.parent)
            partial = archive.with_suffix(".partial")
            self._engine.save_images(list(wanted), partial, timeout=timeout)
            partial.rename(archive)
        return archive

    def _folder(self, cluster: str) -> Path:
        return self._base / f"{cluster}.images"


def _short(images: Iterable[str]) -> str:
    return ", ".join(each.rpartition("/")[2] for each in images)
