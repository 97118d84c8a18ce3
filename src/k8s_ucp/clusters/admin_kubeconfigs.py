"""Admin kubeconfigs on this machine, kept good where a provider's are short-lived."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file

RETRY_SECONDS = 60.0


def write_access(provider: ClusterProvider, cluster: str, path: Path) -> None:
    """Write the admin's kubeconfig where it is another than the file's. Raises UcpError."""
    # JSON is YAML too, and much faster to write.
    text = json.dumps(provider.kubeconfig(cluster), indent=2, sort_keys=True) + "\n"
    if not path.exists() or path.read_text("utf-8") != text:
        write_private_file(path, text)


def renew_access(provider: ClusterProvider, cluster: str, path: Path) -> None:
    """Write it anew where there is one and half of its life is over. Raises UcpError."""
    lifetime = provider.info.access_seconds
    if lifetime and path.exists() and time.time() - path.stat().st_mtime > lifetime / 2:
        write_access(provider, cluster, path)


def keep_access(
    provider: ClusterProvider, cluster: str, path: Path, report: Callable[[str], None]
) -> None:
    """Renew it for as long as this process lives; nothing to do where it lasts."""
    lifetime = provider.info.access_seconds
    if lifetime is None:
        return

    def keep() -> None:
        while True:
            pause = lifetime / 4
            try:
                renew_access(provider, cluster, path)
            except UcpError as error:
                report(f"failed to renew the access to {cluster}: {error.message}")
                pause = RETRY_SECONDS
            time.sleep(pause)

    threading.Thread(target=keep, name="access", daemon=True).start()
