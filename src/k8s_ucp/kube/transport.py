"""The way to an API server: sockets with TLS, kept for the next request.

A server of this machine (an embedded control plane, kind's published port) needs nothing beyond
that, and urllib3 does it. To any other the official client goes: it knows proxies and their
exceptions, keeps connections alive through what lies between, and its import costs 0.12 s of CPU,
which no command pays that talks to this machine alone.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import urlsplit

from urllib3 import PoolManager
from urllib3.util import create_urllib3_context

from k8s_ucp.kube.kubeconfig import is_loopback
from k8s_ucp.kube.limits import bound

_MOST_KEPT = 16
"""Idle connections: as many as threads talk to one server at once."""

_IMPORTING = threading.Lock()
"""Of threads that import a package's parts at once, one may see the package half made."""


def open_pool(
    cluster: Mapping[str, Any], user: Mapping[str, Any], proxy: str | None
) -> PoolManager:
    """Connections to the server of a kubeconfig's cluster, with the user's client certificate.

    cluster, user: as `current_context` returns them. proxy: URL of one to go through.
    The limits of `bounded` apply. Raises OSError or ValueError for an address, a certificate or a
    key that is none.
    """
    context = _tls_context(cluster, user)
    server, name = str(cluster["server"]), cluster.get("tls-server-name")
    if proxy is None and is_loopback(urlsplit(server).hostname or ""):
        named = {"server_hostname": name} if name else {}
        pool = PoolManager(ssl_context=context, maxsize=_MOST_KEPT, **named)
    else:
        pool = _official_pool(server, proxy, name)
        pool.connection_pool_kw.update(ssl_context=context, cert_reqs=context.verify_mode)
    bound(pool)
    return pool


def _official_pool(server: str, proxy: str | None, name: str | None) -> PoolManager:
    with _IMPORTING:
        from kubernetes.client.configuration import Configuration
        from kubernetes.client.rest import RESTClientObject

    settings = Configuration(host=server)
    # The kubeconfig's alone: HTTPS_PROXY would lead requests to clusters nearby away.
    settings.proxy, settings.no_proxy = proxy, ""
    settings.tls_server_name = name
    settings.connection_pool_maxsize = _MOST_KEPT
    pool: PoolManager = RESTClientObject(settings).pool_manager
    return pool


def _tls_context(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    verified = not cluster.get("insecure-skip-tls-verify", False)
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verified else ssl.CERT_NONE)
    authority = cluster.get("certificate-authority-data")
    if authority:
        context.load_verify_locations(cadata=base64.b64decode(authority).decode())
    elif verified:
        context.load_default_certs()
    if user.get("client-certificate-data"):
        certificate, key = user["client-certificate-data"], user.get("client-key-data") or ""
        with _as_file(certificate) as first, _as_file(key) as second:
            context.load_cert_chain(first, second)
    return context


@contextmanager
def _as_file(data: str) -> Iterator[str]:
    """A path to what is encoded, for a library that takes nothing else.

    It has no name that lasts, however this process ends, and where the system allows it no disk.
    """
    with _unnamed_file() as file:
        file.write(base64.b64decode(data))
        file.flush()
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"


def _unnamed_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("k8s-ucp-credential", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile()
