"""Argo Rollouts as host processes, one controller per embedded environment.

On clusters with real pods its Helm chart installs it. Embedded clusters only simulate pods, so the
controller, built from its pinned module, runs here, and Rollouts really go through their steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.clusters.ports import Ports, default_registry, record, recorded
from k8s_ucp.components.component import Health, probe
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.errors import UcpError

NAME = "argo-rollouts"
PORTS = ("metrics", "health")


@dataclass(frozen=True)
class ArgoRollouts:
    """kubeconfig: admin of the environment's app cluster."""

    host: Host
    environment: str
    kubeconfig: Path

    @property
    def name(self) -> str:
        """Name of the program and its log."""
        return f"rollouts-{self.environment}"

    def programs(self) -> list[Program]:
        ports = self._ports()
        record(self._folder(), ports)
        argv = (
            str(self.host.toolbox.path("rollouts-controller")),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--metricsPort", str(ports["metrics"]), "--healthzPort", str(ports["health"])),
            # There is one replica per environment, so leader election is unnecessary.
            "--leader-elect=false",
            *("--loglevel", "info"),
        )
        folder = self._folder()
        return [Program(self.name, argv, folder, {"HOME": str(folder), "TMPDIR": str(folder)})]

    def ready(self) -> Health:
        return probe(self._ports()["health"], "/healthz")

    def _folder(self) -> Path:
        return self.host.folder(NAME, self.environment)

    def _ports(self) -> dict[str, int]:
        """Its ports; they are released once its folder is deleted."""
        folder = self._folder()
        return Ports(default_registry()).reserve(str(folder), PORTS, known=recorded(folder))


def engine_manifests(module: Path) -> dict[str, bytes]:
    """Argo Rollouts' CRDs from its sources: file name -> content. Raises UcpError."""
    paths: Sequence[Path] = sorted((module / "manifests/crds").glob("*-crd.yaml"))
    if not paths:
        raise UcpError(f"{module} does not contain Argo Rollouts' CRDs", next="ucp tools install")
    return {path.name: path.read_bytes() for path in paths}
