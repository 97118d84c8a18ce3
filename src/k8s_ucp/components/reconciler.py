"""The reconciler as a host process: `ucp reconciler run`, supervised."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.clusters.container_engine import CHOICE
from k8s_ucp.clusters.user_kubeconfig import FILES
from k8s_ucp.components.component import Health, probe
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.reconciler.runtime.settings import CONTROLLERS

NAME = "reconciler"
PORTS = ("reconciler-health",)
MADE_WITH = ("kubernetes", "etcd", "kwok")
"""Tools of embedded control planes."""
ENGINE = (
    *(CHOICE, "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY"),
    *("DOCKER_CERT_PATH", "CONTAINER_HOST", "CONTAINERS_CONF"),
    *("CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE"),
)
"""Variables of the user's that lead to the container engine of theirs."""


@dataclass(frozen=True)
class ReconcilerComponent:
    """workspace: the user's folder. topology: its name.

    kubeconfigs: the user's own, where clusters of theirs are used.
    -P: modules that lie in the workspace are not ours to import.
    """

    host: Host
    workspace: Path
    topology: str
    controllers: frozenset[str] = CONTROLLERS
    kubeconfigs: tuple[Path, ...] = ()
    python: str = sys.executable

    def programs(self) -> list[Program]:
        argv = (
            *(self.python, "-P", "-m", "k8s_ucp.cli.main"),
            *("--workspace", str(self.workspace), "--topology", self.topology),
            *("reconciler", "run", "--health-port", str(self.host.ports["reconciler-health"])),
            *("--controllers", ",".join(sorted(self.controllers))),
        )
        env = {
            # Threads come and go; without this each leaves an arena behind that never shrinks.
            "MALLOC_ARENA_MAX": "2",
            "PYTHONUNBUFFERED": "1",
            "UCP_VERSION": __version__,
            # It makes clusters with these, and finds them once.
            "UCP_PROGRAMS": " ".join(self.host.toolbox.entries.get(each, "") for each in MADE_WITH),
            **self.host.cluster_environment(),
            # It makes clusters with the engine that the user's own commands look at.
            **{name: os.environ[name] for name in ENGINE if name in os.environ},
        }
        if self.kubeconfigs:
            env[FILES] = os.pathsep.join(map(str, self.kubeconfigs))
        return [Program(NAME, argv, self.workspace, env)]

    def ready(self) -> Health:
        return probe(self.host.ports["reconciler-health"], "/readyz")
