"""Edits kwokctl's definition of a cluster: its version, folder, ports and arguments.

kwokctl starts the processes from that file, and has no command that changes it. Imports no YAML at
the top level, because the process monitor imports it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.clusters.embedded import kwokctl
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.stages import write_stages
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import write_private_file

_HOME = re.compile(r"^( *)workDir: (.+(?:\n\1 +\S.*)*)$", re.MULTILINE)
"""A component's working folder; YAML breaks long lines at spaces."""

_PORT = re.compile(r"""((?:[pP]ort"?: |port=|127\.0\.0\.1:))([0-9]+)(?=["',\s]|$)""")
"""A port, and what it follows: a key of YAML or JSON, an argument, or the address."""


def set_version(folder: ClusterFolder, before: str, after: str) -> None:
    """Set the Kubernetes version in kwokctl's definition. before, after: with "v"."""
    found = text = folder.definition.read_text("utf-8")
    for old, new in ((before, after), (before.removeprefix("v"), after.removeprefix("v"))):
        text = re.sub(rf"(?m)^( *(kubeVersion|version): ){re.escape(old)}$", rf"\g<1>{new}", text)
    if text != found:
        write_private_file(folder.definition, text)


def update(folder: ClusterFolder, kinds: Collection[str] | None) -> list[str]:
    """Update a cluster's settings for its kinds, or if an older version of ucp created it.

    kinds: of the Gateway API; None if the API server can't be asked. Returns the components that
    must be restarted.
    """
    changed = ["kwok-controller"] if write_stages(folder, kinds) else []
    try:
        text = folder.definition.read_text("utf-8")
    except FileNotFoundError:
        return changed
    after = updated(text, folder)
    if after != text:
        write_private_file(folder.definition, after)
        changed = sorted({*changed, *_differing(text, after)})
    return changed


def _differing(before: str, after: str) -> list[str]:
    """Components whose parts of the definition differ."""
    from k8s_ucp import yaml_io

    def components(text: str) -> dict[str, Any]:
        documents = (each for each in yaml_io.load_all(text) if each)
        return {each["name"]: each for one in documents for each in one.get("components", ())}

    old, new = components(before), components(after)
    return [name for name in new if new[name] != old.get(name)]


def updated(text: str, folder: ClusterFolder) -> str:
    """kwokctl's definition of a cluster with the arguments that this version of ucp sets."""
    # Only the API server has the first argument; only the controller manager has the second.
    for after, arguments in (
        ("etcd-prefix", kwokctl.API_SERVER_ARGUMENTS),
        ("node-monitor-grace-period", kwokctl.ENABLED_CONTROLLERS),
    ):
        missing = [name for name in arguments if not re.search(rf"^ *- '?--{name}=", text, re.M)]
        more = "".join(rf"\n\g<1>'--{name}={arguments[name]}'" for name in missing)
        text = re.sub(rf"^( *- )'?--{after}=.*$", rf"\g<0>{more}", text, count=1, flags=re.M)
    return text.replace(f"--config={folder.definition}", f"--config={folder.stages}")


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
    files = (folder.kwok_config, folder.home / "kubeconfig.yaml", folder.definition)
    return {path: path.read_text("utf-8") for path in files if path.exists()}


def _defined_home(folder: ClusterFolder) -> str:
    """The home that the definition names; this one if it names none, or there is none."""
    try:
        found = _HOME.search(folder.definition.read_text("utf-8"))
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
                f"{command_line('rm', '-r', folder.clusters.parent)}, then the same command",
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
    after = text
    if not former.isascii():  # the settings are JSON, with such characters escaped
        after = after.replace(json.dumps(former)[1:-1], json.dumps(now)[1:-1])
    after = re.sub(spaced, lambda _: now, after)
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
