"""Adapts a cluster whose folder was moved or copied to its new place.

kwokctl's definition names absolute paths. With those of the original, a copy of a workspace would
start etcd on the original's data, and a moved one on nothing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file

_HOME = re.compile(r"^( *)workDir: (.+(?:\n\1 +\S.*)*)$", re.MULTILINE)
"""A component's working folder; YAML breaks long lines at spaces."""


def relocate(folder: ClusterFolder) -> Path | None:
    """Let the definition name this folder; returns the one that it named, None if it was this one.

    Data, keys and ports stay the same. Raises UcpError if the paths can't be replaced safely.
    """
    definition = folder.home / "kwok.yaml"
    try:
        found = _HOME.search(definition.read_text("utf-8"))
    except FileNotFoundError:
        return None
    home = re.sub(r"\n +", " ", found[2]).strip("'\"") if found else str(folder.home)
    if home == str(folder.home):
        return None
    inside = str(folder.home.relative_to(folder.root))
    if not home.endswith(f"/{inside}"):
        raise _refused(folder, home)
    former = home.removesuffix(inside)
    # The definition is written last: it tells whether this was done.
    files = (folder.kwok_config, folder.home / "kubeconfig.yaml", definition)
    texts = {path: path.read_text("utf-8") for path in files if path.exists()}
    changed = {path: _replaced(text, former, f"{folder.root}/") for path, text in texts.items()}
    if None in changed.values():
        raise _refused(folder, home)
    for path, text in changed.items():
        write_private_file(path, text or "")
    return Path(former)


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
