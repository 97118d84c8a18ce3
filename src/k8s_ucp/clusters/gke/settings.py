"""Settings of a GKE cluster: defaults, validation and arguments of `gcloud`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.cluster_provider import REGION, SIZE, ClusterRequest
from k8s_ucp.errors import UsageError

ZONE = "europe-west9-a"
MACHINE = "e2-highcpu-2"
NODES = 3
DISK_GIGABYTES = 20
CHANNEL = "regular"
POOL = "default-pool"
OWNER, NAME = "k8s-ucp-owner", "k8s-ucp-cluster"
"""Labels of the cluster."""

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
LONGEST_NAME = 40
_ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z]")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_MACHINE = re.compile(r"[a-z][a-z0-9-]{1,40}")


@dataclass(frozen=True)
class GkeSettings:
    """One cluster's settings. location: a zone, or a region with nodes in each of its zones."""

    name: str
    location: str = ZONE
    machine: str = MACHINE
    nodes: int = NODES
    """In total if the location is a zone; a region has one node in each of three zones."""
    version: str | None = None

    @classmethod
    def of(cls, request: ClusterRequest) -> GkeSettings:
        """Read and validate a request. Raises UsageError."""
        if not _NAME.fullmatch(request.name):
            raise UsageError(
                f"{request.name!r} is not a valid name of a GKE cluster: use 1 to "
                f"{LONGEST_NAME} of a-z, 0-9 and -, a letter first, a letter or digit "
                "last"
            )
        location = request.parameters.get(REGION, ZONE)
        if not (_ZONE.fullmatch(location) or _REGION.fullmatch(location)):
            raise UsageError(
                f"region of {request.name}: {location!r} is not a valid zone (such as "
                f"{ZONE}) or region",
                next="gcloud compute zones list",
            )
        machine = request.parameters.get(SIZE, MACHINE)
        if not _MACHINE.fullmatch(machine):
            raise UsageError(
                f"size of {request.name}: {machine!r} is not a valid machine type "
                f"(such as {MACHINE})",
                next=f"gcloud compute machine-types list --zones {ZONE}",
            )
        return cls(request.name, location, machine, NODES, request.version)

    @property
    def region(self) -> str:
        return self.location.rpartition("-")[0] if is_zone(self.location) else self.location

    def zone(self, of_region: Sequence[str]) -> str:
        """The zone in which to look up machine types. of_region: the zones of a region.

        Not every region has a zone `a`: europe-west1 has b, c and d.
        """
        return self.location if is_zone(self.location) else min(of_region, default="")

    def location_flag(self) -> str:
        """The flag for the location."""
        return location_flag(self.location)

    def create_arguments(self, owner: str, version: str | None) -> list[str]:
        """Arguments of `gcloud`. version: a full GKE version; None for the channel's default."""
        per_zone = self.nodes if is_zone(self.location) else 1
        return [
            "container",
            "clusters",
            "create",
            self.name,
            self.location_flag(),
            f"--num-nodes={per_zone}",
            f"--machine-type={self.machine}",
            f"--disk-size={DISK_GIGABYTES}",
            f"--release-channel={CHANNEL}",
            *([f"--cluster-version={version}"] if version else []),
            "--enable-shielded-nodes",
            "--shielded-secure-boot",
            "--shielded-integrity-monitoring",
            "--enable-ip-alias",
            f"--labels={OWNER}={owner},{NAME}={self.name}",
            "--async",
        ]


def is_zone(location: str) -> bool:
    """Whether the location is a zone, not a region."""
    return bool(_ZONE.fullmatch(location))


def location_flag(location: str) -> str:
    """The flag for a zone or a region."""
    return f"--{'zone' if is_zone(location) else 'region'}={location}"


def admin_kubeconfig(name: str, described: Mapping[str, Any], token: str) -> dict[str, Any]:
    """A kubeconfig with a token. described: the cluster as gcloud describes it."""
    cluster = {
        "server": f"https://{described['endpoint']}",
        "certificate-authority-data": described["masterAuth"]["clusterCaCertificate"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
