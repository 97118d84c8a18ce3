"""Admin kubeconfigs on this machine, renewed if the provider's credentials are short-lived."""

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
    """Write the admin kubeconfig if it differs from the file. Raises UcpError."""
    # JSON is valid YAML and much faster to write.
    text = json.dumps(provider.kubeconfig(cluster), indent=2, sort_keys=True) + "\n"
    if not path.exists() or path.read_text("utf-8") != text:
        write_private_file(path, text)


def renew_access(provider: ClusterProvider, cluster: str, path: Path) -> None:
    """Rewrite the kubeconfig if it exists and half of its lifetime is over. Raises UcpError."""
    lifetime = provider.info.access_seconds
    if not lifetime or not path.exists():
        return
    age = time.time() - path.stat().st_mtime
    # A file from the future was written before the clock was set back: its age is unknown.
    if not 0 <= age <= lifetime / 2:
        write_access(provider, cluster, path)


def keep_access(
    provider: ClusterProvider, cluster: str, path: Path, report: Callable[[str], None]
) -> None:
    """Renew the kubeconfig in a thread while this process lives, if it expires at all."""
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
