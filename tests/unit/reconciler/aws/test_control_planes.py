"""Control planes behind simulated EKS clusters: their names, starts, and status in EKS."""

from __future__ import annotations

import json
import re

import pytest

from k8s_ucp.cluster_provider import ClusterState
from k8s_ucp.reconciler.aws.control_planes import (
    PATIENCE,
    eks_record,
    is_plane_name,
    must_start,
    plane_name,
)

CONFIG = {
    "clusters": [
        {"cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "Q0E="}}
    ]
}


def state(
    *, exists: bool = True, running: bool = True, ready: bool = True, outdated: bool = False
) -> ClusterState:
    version = "v1.35.4" if exists else None
    return ClusterState("x", exists, running, ready, "", version=version, outdated=outdated)


@pytest.mark.parametrize(
    ("found", "waited", "starts"),
    [
        (state(), 0.0, False),
        (state(exists=False, running=False, ready=False), 0.0, True),
        (state(running=False, ready=False), 0.0, True),
        (state(outdated=True), 0.0, True),
        (state(ready=False), 1.0, False),
        (state(ready=False), PATIENCE + 1, True),
    ],
    ids=["well", "absent", "stopped", "outdated", "silent", "silent for long"],
)
def test_a_control_plane_is_started_if_absent_stopped_outdated_or_silent_too_long(
    found: ClusterState, waited: float, starts: bool
) -> None:
    assert must_start(found, waited=waited) is starts


def test_clusters_of_the_same_name_in_two_regions_have_different_control_planes() -> None:
    cluster = "Demo_stage-" + "x" * 100
    names = {plane_name(region, cluster) for region in ("eu-west-3", "us-east-1")}

    assert len(names) == 2
    assert all(re.fullmatch(r"eks-demo-stage-[-a-z0-9]{1,48}", each) for each in names)
    assert all(map(is_plane_name, names))
    assert not is_plane_name("demo-stage")


def test_access_is_reported_once_created_even_while_the_api_server_is_silent() -> None:
    up, away = eks_record(state(), CONFIG), eks_record(state(ready=False), CONFIG)

    assert json.loads(up["kubeconfig"]) == CONFIG
    assert up == {
        "status": "ACTIVE",
        "endpoint": "https://127.0.0.1:1",
        "certificateAuthority": {"data": "Q0E="},
        "version": "1.35",
        "kubeconfig": up["kubeconfig"],
    }
    assert away == {**up, "status": "UPDATING"}


def test_no_endpoint_is_reported_before_the_control_plane_exists() -> None:
    absent = eks_record(state(exists=False, running=False, ready=False), None)

    assert absent["status"] == "CREATING"
    assert absent["endpoint"] is absent["certificateAuthority"] is absent["version"] is None
