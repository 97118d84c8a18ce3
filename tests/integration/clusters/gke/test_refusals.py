"""Refusals before a GKE cluster is created: one message with the next step, and no change."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.errors import ProgramMissing, UcpError, UsageError
from tests.control_planes import quiet
from tests.gke_clusters import EMAIL, SECRET, Google, google, key

REQUEST = ClusterRequest("shop-core")


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    for name in [each for each in os.environ if each.startswith("CLOUDSDK_")]:
        monkeypatch.delenv(name)
    with google(tmp_path / "google") as found:
        yield found


def changed(cloud: Google) -> list[str]:
    """Calls that change something."""
    verbs = {"create", "delete", "resize", "enable", "activate-service-account"}
    calls = (each["argv"] for each in cloud.seen()["calls"])
    return [" ".join(each) for each in calls if verbs & set(each)]


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no such project": (
        {"project": {"projectId": "other", "lifecycleState": "ACTIVE"}},
        "the project shop-1 does not exist, or robot@",
        "gcloud projects list",
    ),
    "project being deleted": (
        {"project": {"projectId": "shop-1", "lifecycleState": "DELETE_REQUESTED"}},
        "the project shop-1 does not exist or is being deleted",
        "gcloud projects list",
    ),
    "key removed at Google": (
        {"key_ids": []},
        f"Google Cloud rejected the gcp credential ({EMAIL})",
        f"gcloud iam service-accounts keys create creds/gcp.json --iam-account {EMAIL}",
    ),
    "engine API": (
        {"apis": ["compute.googleapis.com"]},
        "the API container.googleapis.com is not enabled in project shop-1",
        "gcloud services enable container.googleapis.com --project shop-1",
    ),
    "compute API": (
        {"apis": ["container.googleapis.com"]},
        "the API compute.googleapis.com is not enabled in project shop-1",
        "gcloud services enable compute.googleapis.com --project shop-1",
    ),
    "not allowed": (
        {"permissions": ["projects", "compute"]},
        f"{EMAIL} lacks a permission in project shop-1",
        "gcloud projects add-iam-policy-binding shop-1 --member serviceAccount:"
        f"{EMAIL} --role roles/container.admin",
    ),
    "not allowed to see quota": (
        {"permissions": ["projects", "container"]},
        f"{EMAIL} lacks a permission in project shop-1",
        "--role roles/compute.viewer",
    ),
    "quota of CPUs": (
        {"quotas": {"CPUS": [8, 4], "SSD_TOTAL_GB": [500, 0]}},
        "CPUS 6 needed, 4 of 8 free",
        "https://console.cloud.google.com/iam-admin/quotas?project=shop-1",
    ),
    "quota of addresses and disks": (
        {"quotas": {"IN_USE_ADDRESSES": [4, 2], "SSD_TOTAL_GB": [100, 50]}},
        "IN_USE_ADDRESSES 3 needed, 2 of 4 free; SSD_TOTAL_GB 60 needed, 50 of 100 free",
        "another region",
    ),
    "zone that is closed": (
        {"zones": ["us-east1-b"]},
        "zone or region europe-west9-a does not exist for project shop-1",
        "gcloud compute zones list",
    ),
    "machine type that is not there": (
        {"machines": {}},
        "the machine type e2-highcpu-2 does not exist in europe-west9-a",
        "gcloud compute machine-types list --zones europe-west9-a",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_unmet_requirement_of_google_cloud_is_reported(cloud: Google, case: str) -> None:
    change, message, next_ = CASES[case]
    cloud.change(**change)
    with pytest.raises(UcpError) as caught:
        cloud.provider().preflight(REQUEST)
    assert message in caught.value.message
    assert next_ in (caught.value.next or "")
    assert changed(cloud) == []
    assert SECRET not in str(caught.value)


KEYS = {
    "no key": ("nonsense", "not a service account key", "keys create creds/gcp.json"),
    "not a JSON object": ("[]", "not a service account key", "keys create creds/gcp.json"),
    "a person's login": (key(type="authorized_user"), "not a service account key", "keys create"),
    "no project": (key(project_id=None), "no Google Cloud project is set", "CLOUDSDK_CORE_PR"),
}


@pytest.mark.parametrize("case", KEYS)
def test_invalid_service_account_key_is_refused(cloud: Google, case: str) -> None:
    text, message, next_ = KEYS[case]
    with pytest.raises(UcpError) as caught:
        cloud.provider(text=text).preflight(REQUEST)
    assert message in caught.value.message
    assert next_ in (caught.value.next or "")
    assert cloud.seen()["calls"] == []


def test_project_can_come_from_the_environment(
    cloud: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDSDK_CORE_PROJECT", "shop-1")
    cloud.provider(text=key(project_id=None)).preflight(REQUEST)


def test_missing_gcloud_is_reported(
    cloud: Google, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="gcloud is not installed") as caught:
        cloud.provider().preflight(REQUEST)
    assert "cloud.google.com/sdk" in (caught.value.next or "")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"region": "mars"}, "not a valid zone"),
        ({"region": "--project=evil"}, "not a valid zone"),
        ({"size": "big one"}, "not a valid machine type"),
        ({"size": "--impersonate"}, "not a valid machine type"),
    ],
)
def test_invalid_region_or_size_never_reaches_gcloud(
    cloud: Google, parameters: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cloud.provider().preflight(ClusterRequest("shop-core", parameters=parameters))
    assert cloud.seen()["calls"] == []


def test_key_is_in_no_argument_and_the_users_gcloud_configuration_is_not_used(
    cloud: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/home/me/.config/gcloud")
    monkeypatch.setenv("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "/home/me/token")
    cloud.provider().preflight(REQUEST)
    calls = cloud.seen()["calls"]
    assert calls
    assert SECRET not in str(calls)
    folders = {Path(each["config"]) for each in calls}
    assert not [each for each in folders if each.exists()], "a check leaves nothing behind"
    assert Path("/home/me/.config/gcloud") not in folders
    assert not cloud.folder().exists()


def test_key_that_a_killed_process_left_is_removed_by_the_next_call(cloud: Google) -> None:
    folder = cloud.folder() / "gcloud"
    folder.mkdir(parents=True)
    left, in_use = folder / ".key-left", folder / ".key-of-another-call"
    for each in (left, in_use):
        each.write_text(SECRET)
    an_hour_ago = time.time() - 3600
    os.utime(left, (an_hour_ago, an_hour_ago))
    cloud.provider().names()
    assert [each.name for each in folder.glob(".key-*")] == [in_use.name]


def test_creation_that_google_refuses_leaves_nothing_behind(cloud: Google) -> None:
    cloud.change(billing=False)
    with pytest.raises(UcpError, match="has no billing account") as caught:
        cloud.provider().create(REQUEST, quiet)
    assert "gcloud billing projects link shop-1" in (caught.value.next or "")
    assert cloud.clusters() == []


def test_cluster_that_ends_in_an_error_is_deleted_again(cloud: Google) -> None:
    cloud.change(breaks="Google Compute Engine: Not all instances running in IGM")
    told: list[str] = []
    with pytest.raises(UcpError, match="Not all instances running in IGM") as caught:
        cloud.provider().create(REQUEST, told.append)
    assert caught.value.next
    assert cloud.clusters() == []
    assert told[-1] == "deleting the cluster shop-core again"


def test_foreign_cluster_of_the_same_name_is_never_changed(cloud: Google) -> None:
    with cloud.state() as state:
        state["clusters"]["shop-core"] = {
            "name": "shop-core",
            "location": "us-east1-b",
            "status": "RUNNING",
            "resourceLabels": {},
        }
    provider = cloud.provider()
    for call in (provider.preflight, lambda request: provider.create(request, quiet)):
        with pytest.raises(UcpError, match="in us-east1-b already exists"):
            call(REQUEST)
    provider.stop("shop-core")
    provider.delete("shop-core")
    assert not provider.state("shop-core").exists
    assert cloud.clusters() == ["shop-core"]
    assert changed(cloud) == []


def test_default_settings_are_passed_to_gcloud(cloud: Google) -> None:
    cloud.change(breaks="enough seen")
    with pytest.raises(UcpError, match="enough seen"):
        cloud.provider().create(ClusterRequest("shop-core", version="1.34"), quiet)
    (made,) = [each for each in changed(cloud) if " create " in each]
    for flag in (
        *("--zone=europe-west9-a", "--num-nodes=3", "--machine-type=e2-highcpu-2"),
        *("--disk-size=20", "--release-channel=regular", "--enable-shielded-nodes"),
        *("--enable-ip-alias", "--cluster-version=1.34.9-gke.300", "--project=shop-1", "--quiet"),
    ):
        assert flag in made.split()


def test_regional_cluster_gets_one_node_in_each_zone(cloud: Google) -> None:
    cloud.change(breaks="enough seen")
    request = ClusterRequest("shop-core", parameters={"region": "europe-west9"})
    with pytest.raises(UcpError, match="enough seen"):
        cloud.provider().create(request, quiet)
    (made,) = [each for each in changed(cloud) if " create " in each]
    assert {"--region=europe-west9", "--num-nodes=1"} <= set(made.split())


def test_machine_type_is_checked_in_a_zone_that_the_region_has(cloud: Google) -> None:
    cloud.provider().preflight(ClusterRequest("shop-core", parameters={"region": "us-east1"}))
    calls = [each["argv"] for each in cloud.seen()["calls"]]
    assert [each for each in calls if {"machine-types", "--zone=us-east1-b"} <= set(each)]


def test_failed_status_calls_during_creation_are_retried(cloud: Google) -> None:
    cloud.change(breaks="the end", make_seconds=0.5)

    def hear(line: str) -> None:
        if line.endswith("provisioning"):
            with cloud.state() as state:
                if len(state["calls"]) < 12:
                    state["fails"] = ["container clusters list"]

    with pytest.raises(UcpError, match="the end"):
        cloud.provider().create(REQUEST, hear)
    assert cloud.clusters() == []


def test_cluster_in_a_zone_that_does_not_respond_does_not_count_as_deleted(cloud: Google) -> None:
    """gcloud succeeds with a list that lacks it, and warns."""
    provider = cloud.provider()
    with cloud.state() as state:
        state["clusters"]["shop-core"] = {
            "name": "shop-core",
            "location": "europe-west9-a",
            "status": "RUNNING",
            "resourceLabels": {"k8s-ucp-owner": "owner-one", "k8s-ucp-cluster": "shop-core"},
        }
        state["silent_zones"] = ["europe-west9-a", "us-east1-b"]
    for call in (provider.delete, provider.state, provider.stop, lambda _: provider.names()):
        with pytest.raises(UcpError, match="zones europe-west9-a, us-east1-b did not") as caught:
            call("shop-core")
        assert "run the command again" in (caught.value.next or "")
    cloud.change(silent_zones=["us-east1-b"])
    assert provider.state("shop-core").exists, "it is in the list"
    provider.delete("shop-core")
    assert cloud.clusters() == []
