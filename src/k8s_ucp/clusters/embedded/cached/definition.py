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
import shlex
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
_HOME = re.compile(r"^( *)workDir: (.+(?:\n\1 +\S.*)*)$", re.MULTILINE)
"""A component's working folder; YAML breaks long lines at spaces."""

_PORT = re.compile(r"""((?:[pP]ort"?: |port=|127\.0\.0\.1:))([0-9]+)(?=["',\s]|$)""")
"""A port, and what it follows: a key of YAML or JSON, an argument, or the address."""


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
    """The same key without a cluster. paths: of programs, as in the settings."""
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


def relocate(folder: ClusterFolder) -> Path | None:
    """Let the definition name this folder; returns the one that it named, None if it was this one.

    It names absolute paths: with those of the original, a copy of a workspace would start etcd on
    the original's data, and a moved one on nothing. Data, keys and ports stay the same. Raises
    UcpError for a copy, and if the paths can't be replaced safely.
    """
    home = _defined_home(folder)
    if home == str(folder.home):
        return None
    inside = str(folder.home.relative_to(folder.root))
    if not home.endswith(f"/{inside}"):
        raise _refused(folder, home)
    former = home.removesuffix(inside)
    _refuse_copy(folder, Path(former))
    texts = _texts(folder)
    changed = {path: _replaced(text, former, f"{folder.root}/") for path, text in texts.items()}
    if None in changed.values():
        raise _refused(folder, home)
    for path, text in changed.items():
        write_private_file(path, text or "")
    return Path(former)


def renumber(folder: ClusterFolder, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Let the definition name other ports, by component; the cluster must not run."""
    numbers = {str(port): str(after[name]) for name, port in before.items()}
    for path, text in _texts(folder).items():
        now = _PORT.sub(lambda found: found[1] + numbers.get(found[2], found[2]), text)
        if now != text:
            write_private_file(path, now)


def _texts(folder: ClusterFolder) -> dict[Path, str]:
    """The files of the definition that exist, with the one last that tells what it is for."""
    files = (folder.kwok_config, folder.home / "kubeconfig.yaml", folder.home / "kwok.yaml")
    return {path: path.read_text("utf-8") for path in files if path.exists()}


def _defined_home(folder: ClusterFolder) -> str:
    """The home that the definition names; this one if it names none, or there is none."""
    try:
        found = _HOME.search((folder.home / "kwok.yaml").read_text("utf-8"))
    except FileNotFoundError:
        found = None
    return re.sub(r"\n +", " ", found[2]).strip("'\"") if found else str(folder.home)


def _refuse_copy(folder: ClusterFolder, former: Path) -> None:
    """Raises UcpError if both have the same keys: it would act in the original's name.

    Its Argo CD, for example, would deploy to the original's app clusters.
    """
    original = ClusterFolder(former.parent, former.name)
    with contextlib.suppress(OSError):
        same = _authority(original).samefile(_authority(folder))  # As in a bind mount.
        if not same and _authority(original).read_bytes() == _authority(folder).read_bytes():
            raise UcpError(
                f"cluster {folder.name} is a copy of the one in {former}, with its ports and keys",
                next="in the copy of the workspace, recreate the clusters from the repositories: "
                f"rm -r {shlex.quote(str(folder.clusters.parent))}, then the same command",
            )


def _authority(folder: ClusterFolder) -> Path:
    return folder.certificate("ca.crt")


def _replaced(text: str, former: str, now: str) -> str | None:
    """The text with other paths; None if that would change more, such as a value's quotation."""
    from k8s_ucp import yaml_io

    def values(text: str) -> str:
        return json.dumps([*yaml_io.load_all(text)], ensure_ascii=False)

    wanted = values(text).replace(former, now)
    spaced = re.escape(former).replace(r"\ ", r"(?: |\n +)")
    after = re.sub(spaced, lambda _: now, text)
    try:
        return after if values(after) == wanted else None
    except (yaml_io.YAMLError, ValueError):
        return None


def _refused(folder: ClusterFolder, home: str) -> UcpError:
    return UcpError(
        f"the control plane {folder.name} was created in {home}, and its definition can't be "
        f"adapted to {folder.home}",
        next="move the workspace back; or recreate the cluster from the repositories, without its "
        "other data: ucp stop --delete-data, then ucp start",
    )
