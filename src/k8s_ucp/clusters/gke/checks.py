"""Checks before GKE creates a cluster: project, APIs, version, machine type, quota.

Each check is one read-only call and raises an UcpError that says what to type.
"""

from __future__ import annotations

from typing import Any

from k8s_ucp.clusters.gke.gcloud import Gcloud
from k8s_ucp.clusters.gke.gcloud_failures import NotThere
from k8s_ucp.clusters.gke.settings import CHANNEL, DISK_GIGABYTES, GkeSettings
from k8s_ucp.errors import UcpError, UsageError


def check_project(gcloud: Gcloud) -> None:
    """Check that the credential is valid and the project exists."""
    project = gcloud.account.project
    try:
        found = gcloud.json("projects", "describe", project)
    except NotThere:
        found = None
    if not found or found.get("lifecycleState") != "ACTIVE":
        raise UcpError(
            f"the project {project} does not exist or is being deleted",
            next="check the project of the gcp credential: gcloud projects list",
        )


def choose_version(gcloud: Gcloud, settings: GkeSettings) -> str | None:
    """The full version for the requested one; None if none is requested. Raises UsageError."""
    config = gcloud.json("container", "get-server-config", settings.location_flag())
    if settings.version is None:
        return None
    wanted = settings.version.removeprefix("v")
    channels = {each["channel"]: each for each in config.get("channels", [])}
    valid = channels.get(CHANNEL.upper(), {}).get("validVersions", [])
    for each in valid:
        if each == wanted or each.startswith((f"{wanted}.", f"{wanted}-")):
            return str(each)
    raise UsageError(
        f"Kubernetes {wanted} is not available for {settings.name} in "
        f"{settings.location}; available: {', '.join(valid)}",
        next="set version to one of these (1.35 selects the newest 1.35), or remove the key",
    )


def check_quota(gcloud: Gcloud, settings: GkeSettings) -> None:
    """Check that the machine type exists and the region has quota for the nodes."""
    where = settings.location
    try:
        region = gcloud.json("compute", "regions", "describe", settings.region)
        where = settings.zone([each.rpartition("/")[2] for each in region.get("zones", [])])
        machine = gcloud.json(
            "compute", "machine-types", "describe", settings.machine, f"--zone={where}"
        )
    except NotThere as error:
        raise UsageError(
            f"the machine type {settings.machine} does not exist in {where}, or the "
            "zone does not exist",
            next=f"gcloud compute machine-types list --zones {where}",
        ) from error
    needed = {
        "CPUS": settings.nodes * int(machine["guestCpus"]),
        "SSD_TOTAL_GB": settings.nodes * DISK_GIGABYTES,
        "IN_USE_ADDRESSES": settings.nodes,
        "INSTANCES": settings.nodes,
    }
    short = [
        words
        for quota in region.get("quotas", [])
        if (words := _shortage(quota, needed.get(quota.get("metric"), 0)))
    ]
    if short:
        project = gcloud.account.project
        raise UcpError(
            f"insufficient quota in project {project}, region {settings.region}, for "
            f"{settings.nodes} nodes {settings.machine}: {'; '.join(short)}",
            next=(
                "request more quota at "
                f"https://console.cloud.google.com/iam-admin/quotas?project={project}, or "
                "set a smaller size or another region"
            ),
        )


def _shortage(quota: dict[str, Any], needed: int) -> str:
    free = float(quota["limit"]) - float(quota["usage"])
    if needed <= free:
        return ""
    return f"{quota['metric']} {needed} needed, {free:g} of {float(quota['limit']):g} free"
