"""Our clusters' contexts in the user's own kubeconfig: `ucp kubeconfig --merge` puts them there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from k8s_ucp.clusters.user_kubeconfig import users_files
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file

PARTS = ("clusters", "users", "contexts")


def own_file() -> Path:
    """The file that kubectl writes to."""
    return users_files()[0]


def read_file(path: Path) -> dict[str, Any]:
    """A kubeconfig of the user's, empty where there is none.

    Raises UcpError where it can't be read or is something else.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(path.read_text("utf-8")) if path.exists() else {}
    except OSError as error:
        raise UcpError(f"can't read {path}: {error.strerror}") from error
    except (YAMLError, ValueError) as error:
        raise _not_one(path) from error
    if not isinstance(found or {}, dict):
        raise _not_one(path)
    return found or {}


def write_file(path: Path, config: dict[str, Any]) -> None:
    """Raises UcpError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link stays a link.
        write_private_file(path.resolve(), json.dumps(config, indent=2) + "\n")
    except OSError as error:
        raise UcpError(f"can't write {path}: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise _not_one(path) from error


def merged(base: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`base` with the parts of `config` in it; what has the same name gives way."""
    found = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **base}
    for part in PARTS:
        new = {each["name"] for each in config[part]}
        kept = [each for each in found.get(part) or [] if each.get("name") not in new]
        found[part] = [*kept, *config[part]]
    return {**found, "current-context": config["current-context"]}


def without(base: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`base` without the parts of `config`, by name; as it is where the cluster is another one.

    What proves a cluster is its certificate authority: a name and a port may be anybody's.
    """
    ours = config["clusters"][0]
    theirs = next((each for each in base.get("clusters") or [] if _same(each, ours)), None)
    if theirs is None:
        return base
    names = {part: {each["name"] for each in config[part]} for part in PARTS}
    found = {
        key: [each for each in value or [] if each.get("name") not in names[key]]
        if key in PARTS
        else value
        for key, value in base.items()
    }
    if found.get("current-context") in names["contexts"]:
        found["current-context"] = ""
    return found


def forget_contexts(config: dict[str, Any]) -> None:
    """Take a cluster that is gone out of the user's kubeconfig; what can't be read is left alone.

    config: its kubeconfig, with the names under which it was merged.
    """
    try:
        path = own_file()
        base = read_file(path)
        if (left := without(base, config)) != base:
            write_file(path, left)
    except UcpError:
        return


def _same(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    authority = "certificate-authority-data"
    proof = ours["cluster"].get(authority)
    return bool(
        theirs.get("name") == ours["name"]
        and proof
        and (theirs.get("cluster") or {}).get(authority) == proof
    )


def _not_one(path: Path) -> UcpError:
    return UcpError(
        f"{path} is no kubeconfig: left as it is", next=f"move {path} away and try again"
    )
