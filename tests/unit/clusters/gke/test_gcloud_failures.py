"""Error output of gcloud 528, and the messages that users get instead."""

from __future__ import annotations

import pytest

from k8s_ucp.clusters.gke.gcloud_failures import Busy, NotThere, OutOfReach, explain
from k8s_ucp.errors import CommandFailed, UcpError, UsageError

EMAIL = "robot@shop-1.iam.gserviceaccount.com"
WHO = (
    f" This command is authenticated as {EMAIL} using the credentials in /w/.key-1, specified by "
    "the [auth/credential_file_override] property."
)
DISABLED = """ has not been used in project 4711 before or it is disabled. Enable it by visiting \
https://console.developers.google.com/apis/api/{0}/overview?project=4711 then retry.{1}
- '@type': type.googleapis.com/google.rpc.ErrorInfo
  domain: googleapis.com
  metadata:
    consumer: projects/4711
    service: {0}
  reason: SERVICE_DISABLED
"""
PROJECT = ("projects", "describe", "shop-1")
CONFIG = ("container", "get-server-config", "--zone=z")
DELETE = ("container", "clusters", "delete", "x")

CASES: dict[str, tuple[tuple[str, ...], str, type[UcpError], str, str]] = {
    "a key that was removed": (
        PROJECT,
        f"ERROR: (gcloud.projects.describe) There was a problem refreshing auth tokens for account "
        f"{EMAIL}: ('invalid_grant: Invalid JWT Signature.', {{'error': 'invalid_grant'}})\n"
        "Please run:\n\n  $ gcloud auth activate-service-account --key-file=FILE\n",
        UcpError,
        f"Google Cloud rejected the gcp credential ({EMAIL})",
        "keys create creds/gcp.json",
    ),
    "a key that is damaged": (
        CONFIG,
        "ERROR: (gcloud.container.get-server-config) Failed to load credential file: [/w/.key-1].  "
        "('Failed to load service account credentials', ValueError('Could not deserialize key "
        "data.', [<OpenSSLError(code=503841036, lib=60, reason=524556)>]))\n",
        UcpError,
        f"Google Cloud rejected the gcp credential ({EMAIL})",
        "keys create creds/gcp.json",
    ),
    "a project of others": (
        PROJECT,
        f"ERROR: (gcloud.projects.describe) [{EMAIL}] does not have permission to access projects "
        "instance [shop-1] (or it may not exist): The caller does not have permission." + WHO,
        UcpError,
        f"the project shop-1 does not exist, or {EMAIL} has no access to it",
        "gcloud projects list",
    ),
    "the API about projects": (
        PROJECT,
        f"ERROR: (gcloud.projects.describe) [{EMAIL}] does not have permission to access projects "
        "instance [shop-1] (or it may not exist): Cloud Resource Manager API"
        + DISABLED.format("cloudresourcemanager.googleapis.com", WHO),
        UcpError,
        "the API cloudresourcemanager.googleapis.com is not enabled in project shop-1",
        "gcloud services enable cloudresourcemanager.googleapis.com --project shop-1",
    ),
    "the engine's API": (
        CONFIG,
        "Fetching server config for z\nERROR: (gcloud.container.get-server-config) "
        "PERMISSION_DENIED: Kubernetes Engine API"
        + DISABLED.format("container.googleapis.com", WHO),
        UcpError,
        "the API container.googleapis.com is not enabled in project shop-1",
        "gcloud services enable container.googleapis.com --project shop-1",
    ),
    "no right to list": (
        ("container", "clusters", "list"),
        "ERROR: (gcloud.container.clusters.list) ResponseError: code=403, message=Required "
        '"container.clusters.list" permission(s) for "projects/shop-1".' + WHO,
        UcpError,
        'Required "container.clusters.list" permission(s) for "projects/shop-1".',
        "--role roles/container.admin",
    ),
    "no such machine type": (
        ("compute", "machine-types", "describe", "e2"),
        "ERROR: (gcloud.compute.machine-types.describe) Could not fetch resource:\n - The resource "
        "'projects/shop-1/zones/z/machineTypes/e2' was not found\n\n",
        NotThere,
        "was not found",
        "",
    ),
    "no such cluster": (
        DELETE,
        "ERROR: (gcloud.container.clusters.delete) ResponseError: code=404, message=Not found: "
        "projects/shop-1/zones/z/clusters/x." + WHO,
        NotThere,
        "Not found: projects/shop-1/zones/z/clusters/x.",
        "",
    ),
    "something else under way": (
        DELETE,
        "ERROR: (gcloud.container.clusters.delete) Some requests did not succeed:\n - "
        "ResponseError: code=400, message=Cluster is running incompatible operation operation-1.\n",
        Busy,
        "another operation is in progress",
        "try again",
    ),
    "out of order": (
        CONFIG,
        "Fetching server config for z\nERROR: (gcloud.container.get-server-config) UNAVAILABLE: "
        "The service is currently unavailable.\n",
        OutOfReach,
        "failed to reach Google Cloud: UNAVAILABLE",
        "HTTPS_PROXY",
    ),
    "out of order, in other words": (
        ("container", "clusters", "list"),
        "ERROR: (gcloud.container.clusters.list) ResponseError: code=503, message=Later.\n",
        OutOfReach,
        "failed to reach Google Cloud",
        "HTTPS_PROXY",
    ),
    "no such place": (
        CONFIG,
        "Fetching server config for mars-a1-a\nERROR: (gcloud.container.get-server-config) "
        'INVALID_ARGUMENT: Location "mars-a1-a" does not exist.' + WHO,
        UsageError,
        "zone or region mars-a1-a does not exist",
        "gcloud compute zones list",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_gcloud_errors_become_one_message_with_the_next_command(case: str) -> None:
    words, output, kind, message, following = CASES[case]
    error = explain(CommandFailed(["gcloud"], 1, output), words, "shop-1", EMAIL)
    assert type(error) is kind
    assert message in error.message
    assert following in (error.next or "")
    assert "authenticated as" not in error.message
