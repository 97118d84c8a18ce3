"""What the components of one topology share in host placement."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import StateFolder, make_private_folder


@dataclass(frozen=True)
class Host:
    """kubeconfig: the core's admin, data inlined. ports: by the names in each component's PORTS."""

    state: StateFolder
    runtime: Path
    toolbox: Toolbox
    ports: Mapping[str, int]
    kubeconfig: Path

    def folder(self, component: str, *parts: str) -> Path:
        """A private folder of a component, created if missing."""
        base = self.state.components / component
        make_private_folder(base)
        for part in parts:
            base /= part
            make_private_folder(base)
        return base

    def address(self, port: str) -> str:
        return f"127.0.0.1:{self.ports[port]}"

    def cluster_environment(self) -> dict[str, str]:
        """Variables for access to the core; the digest restarts programs when the core changes."""
        try:
            digest = hashlib.sha256(self.kubeconfig.read_bytes()).hexdigest()[:16]
        except FileNotFoundError:
            digest = "none"
        return {"KUBECONFIG": str(self.kubeconfig), "UCP_KUBECONFIG_DIGEST": digest}

    def path(self, *folders: Path) -> str:
        """A PATH with these folders before the user's own."""
        return os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
