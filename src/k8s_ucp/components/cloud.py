"""The simulated cloud as a host process: AWS's API on loopback, run by supervisord.

Its state is kept across `ucp stop`: resources have the same ids after the next start.
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
"""Packages of the extra `cloud`."""


@dataclass(frozen=True)
class CloudComponent:
    """topology: its name, for the user agent."""

    host: Host
    topology: str

    def programs(self) -> list[Program]:
        settle_keys(self._folder)
        argv = (
            *(sys.executable, "-P", "-m", "k8s_ucp.cloud.run"),
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
        """Endpoint and credentials for the reconciler."""
        keys = settle_keys(self._folder)
        return AwsAccount(
            f"http://{self.host.address(NAME)}",
            keys.access_key,
            keys.secret_key,
            f"ucp/{self.topology}",
        )

    def admin(self) -> CloudAdmin:
        """Client for ledger, faults and reset."""
        return CloudAdmin(self._port, settle_keys(self._folder).token)

    @property
    def _folder(self) -> Path:
        return self.host.folder(NAME)

    @property
    def _port(self) -> int:
        return self.host.ports[NAME]


def missing_packages() -> list[str]:
    """Packages of the extra that are not installed."""
    return [each for each in PACKAGES if find_spec(each) is None]


def simulator_version() -> str:
    """Version of moto, which simulates AWS; empty if it isn't installed."""
    try:
        return f"moto {version('moto')}"
    except PackageNotFoundError:
        return ""
