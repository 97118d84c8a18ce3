"""Connections to an API server: TLS sockets that are kept for the next request.

For a server on this machine (an embedded control plane, kind's published port) urllib3 is enough.
For any other, the official client is used, which supports proxies and their exceptions and TCP
keepalive. Its import takes 0.12 s of CPU, which commands that only use this machine avoid.
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

from k8s_ucp.loopback import is_loopback
from k8s_ucp.responses.limits import bound

_MOST_KEPT = 16
"""Idle connections kept: one for each thread that uses a server at the same time."""

_IMPORTING = threading.Lock()
"""Threads that import parts of a package at the same time may see it half initialized."""


def open_pool(
    cluster: Mapping[str, Any], user: Mapping[str, Any], proxy: str | None
) -> PoolManager:
    """Connections to the server of a kubeconfig's cluster, with the user's client certificate.

    cluster, user: as returned by `current_context`. proxy: URL of an HTTP proxy.
    The limits of `bounded` apply. Raises OSError or ValueError if the address, a certificate or
    the key is not valid.
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
    # Only the kubeconfig's proxy: HTTPS_PROXY would also apply to clusters nearby.
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
    """A path with the decoded data, for a library that takes paths only.

    It has no name, so nothing remains however this process ends; if possible it is in memory.
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
