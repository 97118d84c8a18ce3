"""Reads the user's own kubeconfig: its contexts, and a context with all files inlined.

Never writes. Exec plugins are not run: they print a short-lived credential from tools of a cloud
that are meant for people.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.kube import current_context, read_kubeconfig
from k8s_ucp.workspace import home_folder

FILES = "UCP_USER_KUBECONFIG"
"""Environment variable with the user's files, for our programs whose KUBECONFIG is the core's."""

_INLINED = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


class UserKubeconfig:
    """The files in $KUBECONFIG, separated by `:`, or else ~/.kube/config."""

    def __init__(self, files: Sequence[Path] | None = None) -> None:
        """files: replace the default ones; the first with an entry wins, as in kubectl."""
        self._files = tuple(files) if files is not None else users_files()

    def contexts(self) -> list[str]:
        """Sorted names of all contexts."""
        return sorted({each["name"] for each, _ in self._entries("contexts")})

    def config(self, context: str, name: str) -> dict[str, Any]:
        """A kubeconfig with only that context, renamed to `name`, and no references to files.

        Raises UsageError if there is no such context, UcpError if it can't be used.
        """
        if context not in self.contexts():
            known = ", ".join(self.contexts()) or "none"
            raise UsageError(
                f"the kubeconfig has no context {context!r}; available: {known}",
                next="kubectl config get-contexts (KUBECONFIG selects the file)",
            )
        refers = self._entry("contexts", "context", context)[0]
        cluster, at = self._entry("clusters", "cluster", refers.get("cluster"))
        user, by = self._entry("users", "user", refers.get("user"))
        _refuse_plugins(user, context)
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": _inlined(cluster, at)}],
            "users": [{"name": name, "user": _inlined(user, by)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        current_context(kubeconfig)
        return kubeconfig

    def _entries(self, section: str) -> list[tuple[Mapping[str, Any], Path]]:
        found = []
        for file in self._files:
            if file.is_file():
                entries = read_kubeconfig(file).get(section) or []
                found += [(each, file) for each in entries if isinstance(each, dict)]
        return [each for each in found if isinstance(each[0].get("name"), str)]

    def _entry(self, section: str, key: str, name: Any) -> tuple[dict[str, Any], Path]:
        for each, file in self._entries(section):
            if each["name"] == name:
                found = each.get(key) or {}
                if not isinstance(found, dict):
                    raise UcpError(f"the kubeconfig {file}: {key} of {name!r} is not a mapping")
                return dict(found), file
        raise UcpError(f"the kubeconfig has no entry {name!r} in {section}")


def users_files() -> tuple[Path, ...]:
    """Absolute paths, whether or not the files exist."""
    named = os.environ.get(FILES) or os.environ.get("KUBECONFIG", "")
    paths = [Path(each).absolute() for each in named.split(os.pathsep) if each]
    return tuple(paths) or (home_folder("KUBECONFIG") / ".kube" / "config",)


def _refuse_plugins(user: Mapping[str, Any], context: str) -> None:
    plugin = user.get("exec") or user.get("auth-provider")
    if not plugin:
        return
    program = plugin.get("command") or plugin.get("name") if isinstance(plugin, dict) else plugin
    kubectl = command_line("kubectl", "--context", context)
    raise UcpError(
        f"the context {context} uses the credential plugin {program}, which ucp does "
        "not run; a token or a client certificate is required",
        next=f"{kubectl} -n kube-system create serviceaccount k8s-ucp-admin && {kubectl} create "
        "clusterrolebinding k8s-ucp-admin --clusterrole cluster-admin --serviceaccount "
        "kube-system:k8s-ucp-admin; a token of it: "
        f"{kubectl} -n kube-system create token k8s-ucp-admin --duration 8760h, for a user and a "
        "context of its own (kubectl config set-credentials, set-context)",
    )


def _inlined(entry: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The entry with the contents of its files, which are relative to the kubeconfig's folder."""
    found = dict(entry)
    for key, data in _INLINED.items():
        path = found.pop(key, None)
        if path and data not in found:
            found[data] = base64.b64encode(_content(file.parent / str(path))).decode()
    path = found.pop("tokenFile", None)
    if path and not found.get("token"):
        found["token"] = _content(file.parent / str(path)).decode("utf-8", "replace").strip()
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UcpError(f"failed to read {path}, referenced by the kubeconfig: {why}") from error
