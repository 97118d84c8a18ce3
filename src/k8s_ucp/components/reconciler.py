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
"""Tools that embedded control planes consist of."""
ENGINE = (
    *(CHOICE, "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY"),
    *("DOCKER_CERT_PATH", "CONTAINER_HOST", "CONTAINERS_CONF"),
    *("CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE"),
)
"""The user's variables that select the container engine."""


@dataclass(frozen=True)
class ReconcilerComponent:
    """workspace: the user's folder. topology: its name.

    kubeconfigs: the user's own, if existing clusters are used. Python runs with -P so that it
    imports no modules from the workspace.
    """

    host: Host
    workspace: Path
    topology: str
    controllers: frozenset[str] = CONTROLLERS
    kubeconfigs: tuple[Path, ...] = ()

    def programs(self) -> list[Program]:
        argv = (
            *(sys.executable, "-P", "-m", "k8s_ucp.cli.main"),
            *("--workspace", str(self.workspace), "--topology", self.topology),
            *("reconciler", "run", "--health-port", str(self.host.ports["reconciler-health"])),
            *("--controllers", ",".join(sorted(self.controllers))),
        )
        env = {
            # Every thread creates a malloc arena that never shrinks.
            "MALLOC_ARENA_MAX": "2",
            "PYTHONUNBUFFERED": "1",
            "UCP_VERSION": __version__,
            # It finds the programs of clusters only once, so an upgrade must restart it.
            "UCP_PROGRAMS": " ".join(self.host.toolbox.entries.get(each, "") for each in MADE_WITH),
            **self.host.cluster_environment(),
            # It must use the same container engine as the user's own commands.
            **{name: os.environ[name] for name in ENGINE if name in os.environ},
        }
        if self.kubeconfigs:
            env[FILES] = os.pathsep.join(map(str, self.kubeconfigs))
        return [Program(NAME, argv, self.workspace, env)]

    def ready(self) -> Health:
        return probe(self.host.ports["reconciler-health"], "/readyz")
