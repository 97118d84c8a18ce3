"""The reconciler as a host process: `ucp reconciler run`, supervised."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.clusters.user_kubeconfig import FILES
from k8s_ucp.components.health import Health, probe
from k8s_ucp.components.host import Host
from k8s_ucp.components.program import Program

NAME = "reconciler"
PORTS = ("reconciler-health",)


@dataclass(frozen=True)
class Reconciler:
    """workspace: the user's folder. topology: its name. controllers: empty for all of them.

    kubeconfigs: the user's own, where clusters of theirs are used.
    -P: modules that lie in the workspace are not ours to import.
    """

    host: Host
    workspace: Path
    topology: str
    controllers: tuple[str, ...] = ()
    kubeconfigs: tuple[Path, ...] = ()
    python: str = sys.executable

    def programs(self) -> list[Program]:
        argv: tuple[str, ...] = (
            *(self.python, "-P", "-m", "k8s_ucp.cli.main"),
            *("--workspace", str(self.workspace), "--topology", self.topology),
            *("reconciler", "run", "--health-port", str(self.host.ports["reconciler-health"])),
        )
        if self.controllers:
            argv += ("--controllers", ",".join(self.controllers))
        env = {
            # Threads come and go; without this each leaves an arena behind that never shrinks.
            "MALLOC_ARENA_MAX": "2",
            "PYTHONUNBUFFERED": "1",
            "UCP_VERSION": __version__,
            **self.host.cluster_environment(),
        }
        if self.kubeconfigs:
            env[FILES] = os.pathsep.join(map(str, self.kubeconfigs))
        return [Program(NAME, argv, self.workspace, env)]

    def ready(self) -> Health:
        return probe(self.host.ports["reconciler-health"], "/readyz")
