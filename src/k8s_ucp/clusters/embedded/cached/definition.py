"""Caches the definition that kwokctl writes for a cluster, for new clusters.

Before kwokctl starts anything, it asks five programs for their versions, one after the other: 0.2
CPU seconds per cluster. The same settings lead to the same definition except for folder, ports and
token, so a cluster can be started from the one that kwokctl wrote for an earlier cluster.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import kwokctl, programs
from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import make_private_folder, write_private_file

FILES = ("kwok.yaml", "kubeconfig.yaml")
"""In the cluster's home; neither contains a key or a password."""
FOLDERS = ("bin", "etcd", "logs", "pids")
"""Folders that kwokctl creates beside them."""

_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""Paths that YAML never quotes."""


@dataclass(frozen=True)
class Particulars:
    """The parts of a definition that are specific to one cluster."""

    folder: ClusterFolder
    ports: Mapping[str, int]
    """Keys: the names in PORTS."""
    token: str
    """Token of its etcd."""

    @property
    def are_plain(self) -> bool:
        """Whether its paths need no quoting in any format."""
        return bool(_PLAIN.fullmatch(str(self.folder.home)))

    def generalized(self, text: str) -> str:
        """The text with placeholders for the values of this cluster."""
        for name, value in self._values().items():
            text = re.sub(rf"(?<![A-Za-z0-9/]){re.escape(value)}(?![A-Za-z0-9-])", name, text)
        return text

    def filled(self, text: str) -> str:
        """The reverse: a generalized text with the values of this cluster."""
        for name, value in self._values().items():
            text = text.replace(name, value)
        return text

    def _values(self) -> dict[str, str]:
        """Placeholder -> value. The longer path comes first, since the other is a prefix of it."""
        return {
            "@home@": str(self.folder.home),
            "@root@": str(self.folder.root),
            "@cluster@": f"kwok-{self.folder.name}",
            "@token@": self.token,
            **{f"@{each}@": str(self.ports[each]) for each in PORTS},
        }


def key(cluster: Particulars, settings: Mapping[str, Any]) -> str:
    """Cache key, the same for all clusters with equal generalized settings."""
    definition = cluster.generalized(json.dumps(settings, sort_keys=True))
    return "definition-" + hashlib.sha256(definition.encode()).hexdigest()[:32]


def key_of_all(paths: Mapping[str, Path], version: str, gogc: int) -> str:
    """The cache key of any cluster with these settings. paths: of programs."""
    ports = {name: 60001 + number for number, name in enumerate(PORTS)}
    one = Particulars(ClusterFolder(Path("/clusters"), "one"), ports, f"{0:016x}")
    settings = kwokctl.settings(one.folder, ports, paths, one.token, version=version, gogc=gogc)
    return key(one, settings)


def write(
    cluster: Particulars, settings: Mapping[str, Any], paths: Mapping[str, Path], cache: Path
) -> bool:
    """Write a new cluster's definition and link its programs if one is cached; returns whether."""
    kept = seeds.find_objects(cache, key(cluster, settings)) if cluster.are_plain else None
    if not kept or kept.keys() != set(FILES):
        return False
    folder = cluster.folder
    for each in FOLDERS:
        make_private_folder(folder.home / each)
    for each, link in programs.links(folder).items():
        folder.link(link, paths[each])
    for name, text in kept.items():
        write_private_file(folder.home / name, cluster.filled(text))
    return True


def keep(cluster: Particulars, settings: Mapping[str, Any], cache: Path) -> None:
    """Cache the definition of a cluster that kwokctl has just created and that has become ready."""
    if not cluster.are_plain:
        return
    with contextlib.suppress(UcpError, OSError):  # Only later clusters benefit from the cache.
        texts = {each: (cluster.folder.home / each).read_text("utf-8") for each in FILES}
        kept = {name: cluster.generalized(text) for name, text in texts.items()}
        # A kwokctl component could have the same name as this cluster.
        if "@cluster@" not in kept["kwok.yaml"]:
            seeds.keep_objects(cache, key(cluster, settings), kept)
