"""Verifies that a kubeconfig is the one that its owner declares. Pure.

The Secret alone proves nothing: anyone who may write Secrets in a source namespace can put any
address into it. So the address is taken from the owner's status, which only its controller can
write; for a LocalCluster, the kubeconfig must match a digest that its controller recorded.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, NoAccess, cloud_of
from k8s_ucp.reconciler.access.kubeconfig import read
from k8s_ucp.reconciler.access.sources import KubeconfigSource, cluster_provider


def digest_of(config: Mapping[str, Any]) -> str:
    """Digest of a kubeconfig; empty if it could not be used anyway."""
    try:
        return digest(read(json.dumps(config).encode()))
    except NoAccess:
        return ""


def digest(auth_info: AuthInfo) -> str:
    """Digest of address, CA and plugin; not of credentials, since short ones could be guessed."""
    parts = (
        auth_info.server,
        auth_info.authority or "",
        str(auth_info.cluster.get("tls-server-name") or ""),
        auth_info.plugin or "",
        auth_info.plugin_args,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def proven(source: KubeconfigSource, auth_info: AuthInfo) -> AuthInfo:
    """The AuthInfo, with the Secret's values replaced by those that the owner declares.

    Raises NoAccess if the two differ, or the owner doesn't vouch for the Secret.
    """
    if source.disowned:
        raise NoAccess("NotNamedByOwner", source.disowned)
    if source.owner.local_cluster:
        return _of_local_cluster(source, auth_info)
    expected = source.known
    if not expected.servers:
        if cluster_provider(source.owner.api_version, source.owner.kind):
            raise NoAccess(
                "SourceUnproven",
                f"the kubeconfig in Secret {source.key} can't be verified: {expected.distrust}",
            )
        # Such a cluster can be reached with the kubeconfig's own credentials only.
        return auth_info
    if address(auth_info.server) not in map(address, expected.servers):
        servers = " or ".join(expected.servers)
        raise _differs(
            source, f"refers to {auth_info.server}, but the owner's status specifies {servers}"
        )
    if (
        expected.authority
        and auth_info.authority
        and _plain(auth_info.authority) != _plain(expected.authority)
    ):
        raise _differs(source, "has another CA than the owner's status")
    if auth_info.plugin is not None and auth_info.way not in (None, cloud_of(expected.provider)):
        raise _differs(
            source,
            f"uses the credential plugin {auth_info.plugin}, "
            f"but the cluster is of {expected.provider}",
        )
    cluster = {"server": auth_info.server}
    authority = expected.authority or auth_info.authority
    if authority:
        cluster["certificate-authority-data"] = authority
    return replace(auth_info, cluster=cluster)


def _of_local_cluster(source: KubeconfigSource, auth_info: AuthInfo) -> AuthInfo:
    if not source.known.digest:
        raise NoAccess(
            "SourceUnproven",
            f"LocalCluster {source.owner.name} has not recorded its kubeconfig yet; "
            "the local-cluster controller of its machine records it once it is running",
        )
    if digest(auth_info) != source.known.digest:
        raise _differs(source, "was not written by the local-cluster controller")
    return auth_info


def _differs(source: KubeconfigSource, how: str) -> NoAccess:
    return NoAccess(
        "SourceDiffers",
        f"the kubeconfig in Secret {source.key} {how}; delete the Secret to have its "
        "owner recreate it",
    )


def address(text: str) -> tuple[str, int]:
    """Host and port of an API server; clouds leave out the scheme and the default port."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        if parts.scheme != "https" or parts.path.strip("/") or parts.username is not None:
            return text, -1
        return (parts.hostname or text).rstrip("."), parts.port or 443
    except ValueError:
        return text, -1


def _plain(text: str) -> bytes:
    try:
        return b"".join(base64.b64decode(text).split())
    except (binascii.Error, ValueError):
        return text.encode()
