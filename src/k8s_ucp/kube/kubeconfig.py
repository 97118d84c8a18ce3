"""Parses kubeconfig files, without running programs or opening files that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp import yaml_io
from k8s_ucp.errors import UcpError

TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")
"""A token that can be sent as a header; use fullmatch."""
_PLUGINS = ("exec", "auth-provider")
_TEXTS = (
    "tls-server-name",
    "certificate-authority-data",
    "client-certificate-data",
    "client-key-data",
)


def read_kubeconfig(path: Path) -> dict[str, Any]:
    """Parse a kubeconfig file. Raises UcpError if it is missing or not a mapping."""
    try:
        content = yaml_io.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UcpError(f"failed to read the kubeconfig {path}: {error.strerror}") from error
    except (yaml_io.YAMLError, ValueError):
        # Without the cause, which may quote the credentials in the file.
        raise UcpError(f"{path} is not a valid kubeconfig") from None
    if not isinstance(content, dict):
        raise UcpError(f"{path} is not a valid kubeconfig")
    return content


def current_context(
    config: Mapping[str, Any], *, plugins: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(cluster, user) of the current context.

    plugins: whether the user may need a credential plugin. Raises UcpError if there is no context,
    or it can't be used, such as one that refers to files.
    """

    def named(section: str, key: str, name: Any) -> dict[str, Any]:
        listed = config.get(section)
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and each.get("name") == name:
                found = each.get(key) or {}
                if not isinstance(found, dict):
                    raise UcpError(f"kubeconfig: {key} of {name!r} in {section} is not a mapping")
                return dict(found)
        raise UcpError(f"kubeconfig: {section} has no entry {name!r}")

    context = named("contexts", "context", config.get("current-context"))
    cluster = named("clusters", "cluster", context.get("cluster"))
    user = named("users", "user", context.get("user")) if context.get("user") else {}
    if not cluster.get("server"):
        raise UcpError("kubeconfig: the cluster has no server")
    if "@" in str(cluster["server"]).partition("//")[2].partition("/")[0]:
        # Errors name the URL.
        raise UcpError(
            "kubeconfig: the URL of the cluster's server contains a user or a password; use a "
            "token or a client certificate instead"
        )
    for part, entry in (("cluster", cluster), ("user", user)):
        for field in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
            if entry.get(field):
                raise UcpError(
                    f"kubeconfig: the {part} refers to a file ({field}); embed the data "
                    "(kubectl config view --flatten)"
                )
    for field in _PLUGINS:
        if not user.get(field):
            user.pop(field, None)
        elif not plugins:
            raise UcpError(
                f"kubeconfig: the user needs the credential plugin {field}, which ucp does not run"
            )
    for part, entry in (("cluster", cluster), ("user", user)):
        for field in _TEXTS:
            if not isinstance(entry.get(field) or "", str):
                raise UcpError(f"kubeconfig: {field} of the {part} is not a string")
    token = user.get("token")
    if token and not (isinstance(token, str) and TOKEN.fullmatch(token)):
        raise UcpError(
            "kubeconfig: the user's token has a space, a line break or another character that "
            "no token has"
        )
    return cluster, user


def proxy_of(cluster: Mapping[str, Any]) -> str | None:
    """`proxy-url` of a cluster. Raises UcpError if it is not supported."""
    url = cluster.get("proxy-url")
    if not url:
        return None
    try:
        parts = urlsplit(str(url))
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise UcpError(
            "kubeconfig: proxy-url of the cluster is not an http:// or https:// URL",
            next="use an HTTP proxy, or remove proxy-url",
        )
    return str(url)
