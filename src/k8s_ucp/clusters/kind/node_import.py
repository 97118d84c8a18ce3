"""Imports archives of images into a node with the node's own containerd.

`kind load image-archive` streams them through the engine into containerd's transfer service, which
takes two and a half times as long; it remains the fallback for unusual nodes.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode
from k8s_ucp.errors import CommandFailed

ARCHIVE = "/kind/k8s-ucp-images.tar"
"""Path in the node during the import."""
_PLUGINS = {2: ("io.containerd.grpc.v1.cri", "containerd"), 3: ("io.containerd.cri.v1.images",)}
"""Configuration section of pods' images, by version of containerd's configuration; 4 is like 3."""


def import_archive(
    engine: ContainerEngine, node: ContainerNode, archive: Path, *, timeout: float
) -> bool:
    """Import the images of an archive (`docker save`) into a node.

    timeout: seconds in total. Returns False if this method does not work for the node. Raises
    UcpError, DeadlineExceeded.
    """
    until = time.monotonic() + timeout

    def inside(*arguments: str) -> str:
        return engine.execute(node, *arguments, timeout=max(1.0, until - time.monotonic()))

    try:
        snapshotter = snapshotter_of(tomllib.loads(inside("containerd", "config", "dump")))
        if snapshotter is None:
            return False
        engine.copy_in(node, archive, ARCHIVE, timeout=timeout)
        try:
            inside(
                *("ctr", "--namespace=k8s.io", "images", "import", "--local", "--all-platforms"),
                *("--digests", f"--snapshotter={snapshotter}", ARCHIVE),
            )
        finally:
            inside("rm", "-f", ARCHIVE)
    except (CommandFailed, tomllib.TOMLDecodeError):
        return False
    return True


def snapshotter_of(config: Mapping[str, Any]) -> str | None:
    """Snapshotter of pods' images in containerd's configuration; None if there is none."""
    found: Any = config.get("plugins")
    version = config.get("version")
    for name in _PLUGINS.get(min(version, 3) if isinstance(version, int) else 0, ("",)):
        found = found.get(name) if isinstance(found, Mapping) else None
    snapshotter = found.get("snapshotter") if isinstance(found, Mapping) else None
    return snapshotter if isinstance(snapshotter, str) and snapshotter else None
