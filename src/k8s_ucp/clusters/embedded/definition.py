"""What kwokctl writes down of a cluster, kept once and given to each new one.

Before it starts anything, kwokctl asks five programs for their versions, one after the other: 0.2
CPU seconds of each cluster. The same settings lead to the same definition but for folder, ports and
token, so a cluster is started from the one that kwokctl wrote for a cluster before.
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
"""In the cluster's home; neither holds a key or a password."""
FOLDERS = ("bin", "etcd", "logs", "pids")
"""What kwokctl makes beside them."""

_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""Paths that YAML never quotes."""


@dataclass(frozen=True)
class Particulars:
    """What one cluster's definition has for itself."""

    folder: ClusterFolder
    ports: Mapping[str, int]
    """By the names in PORTS."""
    token: str
    """Of its etcd."""

    @property
    def are_plain(self) -> bool:
        """Its paths look the same in any text."""
        return bool(_PLAIN.fullmatch(str(self.folder.home)))

    def generalized(self, text: str) -> str:
        """A text of this cluster with names in the place of what is its own."""
        for name, value in self._values().items():
            text = re.sub(rf"(?<![A-Za-z0-9/]){re.escape(value)}(?![A-Za-z0-9-])", name, text)
        return text

    def filled(self, text: str) -> str:
        """The reverse: a generalized text, as this cluster has it."""
        for name, value in self._values().items():
            text = text.replace(name, value)
        return text

    def _values(self) -> dict[str, str]:
        """The longer path comes first, as the other one begins it."""
        return {
            "@home@": str(self.folder.home),
            "@root@": str(self.folder.root),
            "@cluster@": f"kwok-{self.folder.name}",
            "@token@": self.token,
            **{f"@{each}@": str(self.ports[each]) for each in PORTS},
        }


def key(cluster: Particulars, settings: Mapping[str, Any]) -> str:
    """Of all clusters that kwokctl is told the same of."""
    told = cluster.generalized(json.dumps(settings, sort_keys=True))
    return "definition-" + hashlib.sha256(told.encode()).hexdigest()[:32]


def key_of_all(paths: Mapping[str, Path], version: str, gogc: int) -> str:
    """The same without a cluster. paths: of programs, as settings have them."""
    ports = {name: 60001 + number for number, name in enumerate(PORTS)}
    one = Particulars(ClusterFolder(Path("/clusters"), "one"), ports, f"{0:016x}")
    settings = kwokctl.settings(one.folder, ports, paths, one.token, version=version, gogc=gogc)
    return key(one, settings)


def write(
    cluster: Particulars, settings: Mapping[str, Any], paths: Mapping[str, Path], cache: Path
) -> bool:
    """Write a new cluster's definition, and link its programs, where one is kept; else nothing."""
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
    """Keep the definition of a cluster that kwokctl has just made, and that has come up."""
    if not cluster.are_plain:
        return
    with contextlib.suppress(UcpError, OSError):  # It is a gain of later clusters alone.
        texts = {each: (cluster.folder.home / each).read_text("utf-8") for each in FILES}
        kept = {name: cluster.generalized(text) for name, text in texts.items()}
        # A component of kwokctl's may be called as this cluster is there.
        if "@cluster@" not in kept["kwok.yaml"]:
            seeds.keep_objects(cache, key(cluster, settings), kept)
