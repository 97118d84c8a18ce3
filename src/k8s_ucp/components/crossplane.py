"""Crossplane on the host: initialized once, then its core controllers as one process.

Packages run outside of it (the External runtime): nothing here pulls or starts their images. Its
RBAC manager listens on all interfaces, which can't be changed, and is not needed by a Crossplane
that is cluster-admin, so `rbacManager` takes effect in pods placement only. The same is true of
`leaderElection`: a single process needs none, and Crossplane can't hold a lease outside of a pod.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.components.component import Health, probe
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.kube import SECRET, Kube
from k8s_ucp.names import CROSSPLANE_NAMESPACE
from k8s_ucp.process import RunningPrograms, run
from k8s_ucp.workspace import write_private_file

if TYPE_CHECKING:
    from k8s_ucp.topology import CrossplaneSettings

NAME = "crossplane"
NAMESPACE = CROSSPLANE_NAMESPACE
PORTS = ("crossplane-metrics", "crossplane-health")
CLIENT_SECRET = "crossplane-tls-client"  # noqa: S105 (a name)
SERVER_SECRET = "crossplane-tls-server"  # noqa: S105
CA_SECRET = "crossplane-root-ca"  # noqa: S105
CERTIFICATES = ("ca.crt", "tls.crt", "tls.key")
INIT_SECONDS = 180.0
"""On a loaded machine a minute is not enough."""


@dataclass(frozen=True)
class Crossplane:
    """settings: the topology's intervals and rates."""

    host: Host
    settings: CrossplaneSettings

    def initialize(
        self, *, timeout: float = INIT_SECONDS, programs: RunningPrograms | None = None
    ) -> None:
        """Let Crossplane create its certificates and default objects. Can be repeated.

        Its CRDs must be applied already: Crossplane would apply them one after another, and fail on
        the objects that follow while the kinds are not yet served. programs: lists the process
        while it runs. Raises DeadlineExceeded with its last output.
        """
        program = self.host.toolbox.path(NAME)
        until = time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            try:
                run(
                    [program, "core", "init", "--activation", "*"],
                    timeout=max(1.0, left),
                    env=self._init_environment(),
                    programs=programs,
                )
            except (CommandFailed, DeadlineExceeded) as error:
                failed = isinstance(error, CommandFailed)
                if failed and left > 0 and not (programs and programs.ended):
                    time.sleep(0.2)
                    continue
                output = error.output if isinstance(error, CommandFailed) else error.last_state
                last = "".join(output.strip().splitlines()[-1:])
                raise DeadlineExceeded(
                    "end of `crossplane core init`", timeout, last, next="ucp start"
                ) from error
            else:
                return

    def fetch_certificates(self, kube: Kube) -> None:
        """Write the client certificate created by `initialize` to the process's folder.

        Raises UcpError.
        """
        found = kube.get(SECRET, CLIENT_SECRET, NAMESPACE).get("data") or {}
        missing = [name for name in CERTIFICATES if not found.get(name)]
        if missing:
            raise UcpError(
                f"Secret {CLIENT_SECRET} in {NAMESPACE} has no {', '.join(missing)}",
                next="delete that Secret, then: ucp start",
            )
        folder = self._certificates()
        for name in CERTIFICATES:
            write_private_file(folder / name, base64.b64decode(found[name]).decode())

    def programs(self) -> list[Program]:
        """The core controllers; call `fetch_certificates` first."""
        argv = (
            *(str(self.host.toolbox.path(NAME)), "core", "start"),
            *("--namespace", NAMESPACE, "--package-runtime", "External"),
            "--enable-webhooks=false",
            *("--metrics-port", str(self.host.ports["crossplane-metrics"])),
            *("--health-probe-port", str(self.host.ports["crossplane-health"])),
            *("--sync-interval", self.settings.sync_interval),
            *("--poll-interval", self.settings.poll_interval),
            *("--max-concurrent-reconciles", str(self.settings.max_reconcile_rate)),
            realtime(self.settings),
            *("--tls-client-secret-name", CLIENT_SECRET),
            *("--tls-client-certs-dir", str(self._certificates())),
            *("--xpkg-cache-dir", str(self.host.folder(NAME, "packages"))),
        )
        env = {
            **self.host.cluster_environment(),
            "HOME": str(self.host.folder(NAME)),
            "TMPDIR": str(self.host.folder(NAME, "tmp")),
        }
        return [Program(NAME, argv, self.host.folder(NAME), env)]

    def ready(self) -> Health:
        return probe(self.host.ports["crossplane-health"], "/readyz")

    def _certificates(self) -> Path:
        return self.host.folder(NAME, "certificates")

    def _init_environment(self) -> dict[str, str]:
        return {
            "PATH": self.host.path(),
            "HOME": str(self.host.folder(NAME)),
            "KUBECONFIG": str(self.host.kubeconfig),
            "POD_NAMESPACE": NAMESPACE,
            "ENABLE_WEBHOOKS": "false",
            "CRDS_PATH": str(self.host.folder(NAME, "no-crds")),
            "TLS_CA_SECRET_NAME": CA_SECRET,
            "TLS_SERVER_SECRET_NAME": SERVER_SECRET,
            "TLS_CLIENT_SECRET_NAME": CLIENT_SECRET,
        }


def realtime(settings: CrossplaneSettings) -> str:
    """The flag for realtime compositions, a beta feature that is on by default."""
    return f"--enable-realtime-compositions={str(settings.realtime_compositions).lower()}"


def engine_manifests(module: Path) -> dict[str, bytes]:
    """Crossplane's CRDs from its sources: file name in the core repository -> content.

    Raises UcpError.
    """
    paths: Sequence[Path] = sorted((module / "cluster/crds").glob("*.yaml"))
    if not paths:
        raise UcpError(f"{module} does not contain Crossplane's CRDs", next="ucp tools install")
    texts = [path.read_text("utf-8").removeprefix("---\n").rstrip("\n") for path in paths]
    return {"crds.yaml": "".join(f"---\n{text}\n" for text in texts).encode()}
