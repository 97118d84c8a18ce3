"""Manages our clusters' contexts in the user's kubeconfig (`ucp kubeconfig --merge`)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.clusters.user_kubeconfig import users_files
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.kube import read_kubeconfig
from k8s_ucp.loopback import is_loopback
from k8s_ucp.workspace import write_private_file

WIDTH = 2**30
"""Line width in YAML, so that certificates stay on one line."""
LOCK_SECONDS = 5.0
PARTS = ("clusters", "users", "contexts")


def own_file() -> Path:
    """The file that kubectl writes to."""
    return users_files()[0]


def read_file(path: Path) -> dict[str, Any]:
    """A kubeconfig of the user; empty if there is none.

    Raises UcpError if it can't be read or is not a kubeconfig.
    """
    return _parsed(path, _text(path))


def change_file(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change a kubeconfig; keeps comments, the order of entries, and JSON if it was JSON.

    Holds kubectl's own lock from reading to writing, since kubectl writes the file too. Raises
    UcpError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A symbolic link stays a link.
        resolved = path.resolve()
        with _kubectl_locked(path):
            text = _text(resolved)
            base = _parsed(path, text)
            wanted = change(base)
            if wanted != base:
                write_private_file(resolved, _written(path, text, wanted))
    except OSError as error:
        raise UcpError(
            f"failed to write {path}: {error.strerror}",
            next="make it writable, or set KUBECONFIG to a file that is",
        ) from error
    except (TypeError, ValueError) as error:
        raise _not_one(path) from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8") if path.exists() else ""
    except OSError as error:
        raise UcpError(f"failed to read {path}: {error.strerror}") from error
    except ValueError as error:
        raise _not_one(path) from error


def _parsed(path: Path, text: str, *, to_edit: bool = False) -> dict[str, Any]:
    """to_edit: keep comments and quotes for writing."""
    from k8s_ucp import yaml_io

    try:
        found = yaml_io.editor(width=WIDTH).load(text) if to_edit else yaml_io.load(text)
    except (yaml_io.YAMLError, ValueError) as error:
        raise _not_one(path) from error
    if not _is_one(found or {}):
        raise _not_one(path)
    return found or {}


def _is_one(found: Any) -> bool:
    """Whether it is a kubeconfig for kubectl: lists of named entries. Checks nothing else."""
    if not isinstance(found, dict):
        return False
    for part in PARTS:
        items = found.get(part) or []
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            return False
        for each in items:
            content = each.get(part.removesuffix("s")) or {}
            if not isinstance(each.get("name"), str) or not isinstance(content, dict):
                return False
    return True


def _written(path: Path, text: str, wanted: dict[str, Any]) -> str:
    """The file's new content."""
    if not text.strip() or text.lstrip().startswith("{"):
        return json.dumps(wanted, indent=2) + "\n"
    from k8s_ucp import yaml_io

    document = _parsed(path, text, to_edit=True)
    for key, value in wanted.items():
        items = document.get(key)
        if key in PARTS and items and isinstance(items, list):
            for index in reversed(range(len(items))):
                if items[index] not in value:
                    del items[index]
            items.extend(each for each in value if each not in items)
        elif items != value:
            document[key] = value
    return yaml_io.written(yaml_io.editor(width=WIDTH), document)


@contextmanager
def _kubectl_locked(path: Path) -> Iterator[None]:
    """Lock like kubectl: a file beside the kubeconfig that exists while somebody writes."""
    lock = path.with_name(f"{path.name}.lock")
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError as error:
            if time.monotonic() > until:
                raise UcpError(
                    f"{path} is locked by another program: {lock} exists",
                    next="wait for it; if the lock is left over from a killed kubectl: "
                    + command_line("rm", lock),
                ) from error
        time.sleep(0.05)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def merged(base: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`base` with the entries of `config`; entries of the same name are replaced."""
    found = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **base}
    for part in PARTS:
        new = {each["name"] for each in config[part]}
        kept = [each for each in found.get(part) or [] if each.get("name") not in new]
        found[part] = [*kept, *config[part]]
    return {**found, "current-context": config["current-context"]}


def refuse_others(base: dict[str, Any], config: dict[str, Any], path: Path) -> None:
    """Refuse to replace entries, unless they are of this cluster or an earlier one on this machine.

    The user may have credentials under the same name that exist nowhere else. Raises UcpError.
    """
    ours = config["clusters"][0]
    if found := next(_others(base, ours), ""):
        others = " && ".join(
            command_line("kubectl", "config", f"delete-{part.removesuffix('s')}", ours["name"])
            for part in ("contexts", *PARTS[:2])
        )
        raise UcpError(
            f"{path} has {found}, which is not the cluster {ours['name']} of ucp and would be "
            "overwritten; it was not changed",
            next=f"rename it in {path}; or, if nobody needs it: {others}",
        )


def _others(base: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """Descriptions of entries that have the name of our cluster but concern another one."""
    name = ours["name"]
    for each in base.get("clusters") or []:
        server = str((each.get("cluster") or {}).get("server") or "")
        if each["name"] == name and not (
            _same(each, ours) or server == ours["cluster"].get("server") or _is_here(server)
        ):
            yield f"a cluster {name} at {server or 'an unknown address'}"
    for each in base.get("contexts") or []:
        refers = each.get("context") or {}
        if each["name"] == name and refers.get("cluster") not in (None, name):
            yield f"a context {name} for the cluster {refers['cluster']}"
        if each["name"] != name and refers.get("user") == name:
            yield f"a user {name} of the context {each['name']}"


def replaced_server(base: dict[str, Any], config: dict[str, Any]) -> str:
    """The server of another local cluster whose entry is replaced; "" if there is none."""
    ours = config["clusters"][0]
    for each in base.get("clusters") or []:
        server = str((each.get("cluster") or {}).get("server") or "")
        if each["name"] == ours["name"] and not _same(each, ours):
            return server if server != ours["cluster"].get("server") else ""
    return ""


def _is_here(server: str) -> bool:
    try:
        return is_loopback(urlsplit(server).hostname or "")
    except ValueError:
        return False


def without(base: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`base` without the entries of `config`, by name; unchanged if it is another cluster's.

    The certificate authority identifies the cluster: another one may have the same name and port.
    """
    ours = config["clusters"][0]
    entry = next((each for each in base.get("clusters") or [] if _same(each, ours)), None)
    if entry is None:
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


@contextmanager
def forgetting_deleted(files: Iterable[Path]) -> Iterator[None]:
    """Remove the clusters that the block deletes from the user's kubeconfig.

    files: their kubeconfigs, which the controller deletes together with them.
    """
    configs: dict[Path, dict[str, Any]] = {}
    for file in files:
        with suppress(UcpError):
            configs[file] = read_kubeconfig(file)
    yield
    for file, config in configs.items():
        if not file.exists():
            forget_contexts(config)


def forget_contexts(config: dict[str, Any]) -> None:
    """Remove a deleted cluster from the user's kubeconfig; an unreadable file is left alone.

    config: its kubeconfig, with the names under which it was merged.
    """
    try:
        path = own_file()
        # Most kubeconfigs contain nothing of ours: those are neither locked nor created.
        base = read_file(path)
        if without(base, config) != base:
            change_file(path, lambda found: without(found, config))
    except UcpError:
        return


def _same(entry: dict[str, Any], ours: dict[str, Any]) -> bool:
    authority = "certificate-authority-data"
    proof = ours["cluster"].get(authority)
    return bool(
        entry.get("name") == ours["name"]
        and proof
        and (entry.get("cluster") or {}).get(authority) == proof
    )


def _not_one(path: Path) -> UcpError:
    return UcpError(
        f"{path} is not a valid kubeconfig; it was not changed",
        next=f"move {path} away and run the command again",
    )
