"""Parses an untrusted kubeconfig: runs no program and opens no file that it names."""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp import yaml_io
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import current_context
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, ClusterInfo, NoAccess

LARGEST = 1_000_000
"""Bytes of a kubeconfig; a Secret can't hold more."""
LARGEST_YAML = 250_000
MOST_BRACKETS = 2_000
MOST_LINES = 5_000
"""Limits of YAML: each bracket or line takes a tenth of a millisecond to parse."""


def read(content: bytes, cluster_info: ClusterInfo | None = None) -> AuthInfo:
    """Parse a kubeconfig from a Secret. Raises NoAccess, which says what is invalid."""
    if len(content) > LARGEST:
        raise NoAccess("KubeconfigInvalid", f"the kubeconfig is larger than {LARGEST} bytes")
    parsed = _parsed(content)
    if not isinstance(parsed, dict):
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is not a mapping")
    try:
        cluster, user = current_context(parsed, plugins=True)
    except UcpError as error:
        raise NoAccess("KubeconfigInvalid", error.message) from error
    if not _is_https(str(cluster["server"])):
        raise NoAccess("KubeconfigInvalid", "the server's URL does not begin with https://")
    if cluster.get("insecure-skip-tls-verify"):
        raise NoAccess(
            "KubeconfigInvalid",
            "insecure-skip-tls-verify is set: the token would be sent to an unverified server",
        )
    if cluster.get("proxy-url"):
        raise NoAccess(
            "KubeconfigInvalid",
            "proxy-url is set: the author of the Secret could redirect requests",
        )
    _check_encoded(cluster, "certificate-authority-data")
    _check_authority(cluster)
    for name in ("client-certificate-data", "client-key-data"):
        _check_encoded(user, name)
    return AuthInfo(cluster, user, cluster_info or ClusterInfo())


def _parsed(content: bytes) -> Any:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is not valid UTF-8") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if (
        len(text) > LARGEST_YAML
        or text.count("[") + text.count("{") > MOST_BRACKETS
        or text.count("\n") + text.count("\r") > MOST_LINES
    ):
        # Crafted YAML can keep the parser busy for minutes.
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is too large or too deeply nested")
    try:
        return yaml_io.load(text)
    except (yaml_io.YAMLError, ValueError, RecursionError) as error:
        # The parser's message quotes the text, which may contain a credential.
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is neither YAML nor JSON") from error


def _is_https(server: str) -> bool:
    try:
        address = urlsplit(server)
        # Accessing the port validates it.
        return address.scheme == "https" and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _check_encoded(part: Mapping[str, Any], name: str) -> None:
    if part.get(name):
        try:
            base64.b64decode(str(part[name]), validate=True)
        except (binascii.Error, ValueError) as error:
            raise NoAccess("KubeconfigInvalid", f"{name} is not base64") from error


def _check_authority(cluster: Mapping[str, Any]) -> None:
    if not cluster.get("certificate-authority-data"):
        return
    text = base64.b64decode(str(cluster["certificate-authority-data"]))
    try:
        ssl.create_default_context(cadata=text.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise NoAccess(
            "KubeconfigInvalid", "certificate-authority-data contains no certificate"
        ) from error
