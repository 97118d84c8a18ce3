"""The cloud on this machine as a host process: AWS's interface on the loopback, supervised.

Its state outlives it and `ucp stop`: what was made has the same ids at the next start.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cloud.admin import CloudAdmin
from k8s_ucp.cloud.keys import settle_keys
from k8s_ucp.components.component import Health, probe
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program

NAME = "cloud"
PORTS = (NAME,)
PACKAGES = ("boto3", "botocore", "crossplane", "flask", "flask_cors", "moto", "werkzeug")
"""What the distribution's extra `cloud` brings."""


@dataclass(frozen=True)
class CloudComponent:
    """topology: its name, for the user agent."""

    host: Host
    topology: str
    python: str = sys.executable

    def programs(self) -> list[Program]:
        settle_keys(self._folder)
        argv = (
            *(self.python, "-P", "-m", "k8s_ucp.cloud.run"),
            *("--folder", str(self._folder), "--port", str(self._port)),
        )
        env = {
            "MALLOC_ARENA_MAX": "2",
            "PYTHONUNBUFFERED": "1",
            "UCP_VERSION": __version__,
        }
        return [Program(NAME, argv, self._folder, env)]

    def ready(self) -> Health:
        return probe(self._port, "/_ucp/health")

    def account(self) -> AwsAccount:
        """What the reconciler calls it with."""
        keys = settle_keys(self._folder)
        return AwsAccount(
            f"http://{self.host.address(NAME)}",
            keys.access_key,
            keys.secret_key,
            f"ucp/{self.topology}",
        )

    def admin(self) -> CloudAdmin:
        """Ledger, faults, reset."""
        return CloudAdmin(self._port, settle_keys(self._folder).token)

    @property
    def _folder(self) -> Path:
        return self.host.folder(NAME)

    @property
    def _port(self) -> int:
        return self.host.ports[NAME]


def missing_packages() -> list[str]:
    """Those of the extra that aren't installed."""
    return [each for each in PACKAGES if find_spec(each) is None]


def simulator_version() -> str:
    """Of moto, which answers in AWS's place; empty where it isn't installed."""
    try:
        return f"moto {version('moto')}"
    except PackageNotFoundError:
        return ""
