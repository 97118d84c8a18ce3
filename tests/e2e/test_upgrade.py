"""Newer pins on a running topology: parts are upgraded one by one, or rolled back, without loss."""

from __future__ import annotations

import json

import pytest

from k8s_ucp import plans
from k8s_ucp.kube import CRD
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import load
from tests.conftest import CACHE
from tests.e2e.embedded_topology import host_placement, well
from tests.e2e.interruption_points import KILLED, cut, cut_somewhere
from tests.e2e.newer_ucp import installed, made_up, newer
from tests.e2e.running_versions import kubernetes_of, pods, versions
from tests.e2e.world import Workbench, until

PINS = made_up(99)
APPS = ("argocd-application-controller", "argocd-server", "reconciler")


def pids(world: Workbench) -> dict[str, int]:
    """PIDs of components that are not upgraded here."""
    states = host_placement(world).states()
    return {name: states[name].pid for name in APPS}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        # The API server still answers.
        pytest.param("stage", ["kube-scheduler"], marks=pytest.mark.slow),
        pytest.param("stage", ["kube-apiserver"], marks=pytest.mark.soak),
        pytest.param("crossplane", ["crossplane"], marks=pytest.mark.soak),
    ],
)
def test_version_that_does_not_become_healthy_is_rolled_back(
    demo: Workbench, part: str, broken: list[str]
) -> None:
    until("well before", lambda: well(demo))
    ids, apps, pinned = demo.uids(), pods(demo, "stage"), versions(demo)["crossplane"]
    pins = made_up(98)
    with installed(CACHE, pins, broken=broken):
        with newer(demo, pins):
            failed = demo.ucp("upgrade", part, "--wait", "20", expect=1, timeout=300).stderr
        assert "not as healthy as before" in failed
        assert "is healthy" in failed
        assert part != "stage" or f"{broken[0]} of" in failed
        assert "ucp " in failed.rpartition("next:")[2]
        assert versions(demo)["crossplane"] == pinned
        assert kubernetes_of(demo, "stage") == f"v{CATALOGUE['kubernetes'].version}"
        assert (demo.uids(), pods(demo, "stage")) == (ids, apps)
    until("well after", lambda: well(demo))


def versions_of_objects(world: Workbench) -> dict[str, str]:
    """UIDs and resource versions of objects of the core that controllers don't write."""
    kube = world.kube("core")
    kinds = (CRD, kube.kind_of("rbac.authorization.k8s.io/v1", "ClusterRole"))
    found = [item["metadata"] for kind in kinds for item in kube.list_all(kind)]
    kube.close()
    return {f"{each['uid']} {each['name']}": each["resourceVersion"] for each in found}


def control_planes(world: Workbench) -> set[int]:
    """PIDs of all control plane processes of the workspace, including those of copies."""
    return {each.pid for each in world.processes() if "UCP_CONTROL_PLANE" in each.environ()}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_rehearsal_changes_nothing_and_reports_what_would_fail(demo: Workbench) -> None:
    until("well before", lambda: well(demo))
    copy = demo.state / "rehearsal"
    ids, objects = demo.uids(), versions_of_objects(demo)
    running, components = control_planes(demo), pids(demo)
    refused = {"apiextensions.crossplane.io_usages.yaml": ("scope: Cluster", "scope: Namespaced")}
    pins = {"crossplane": made_up(96)["crossplane"]}
    with installed(CACHE, pins, edited=refused), newer(demo, pins):
        # A killed rehearsal leaves its copy to the next command.
        words = ("upgrade", "crossplane", "--rehearse")
        assert cut(demo, "after:copy-core", *words).returncode == KILLED
        assert len(control_planes(demo)) > len(running)
        assert copy.stat().st_mode & 0o077 == 0
        failed = demo.ucp(*words, expect=1, timeout=300)
        assert "usages.apiextensions.crossplane.io" in failed.stderr
        assert "ucp upgrade" in failed.stderr.rpartition("next:")[2]
    assert control_planes(demo) == running
    assert not copy.exists()
    pins = made_up(97)
    with installed(CACHE, pins), newer(demo, pins):
        rehearsed = ("upgrade", "core", "crossplane", "--rehearse", "-o", "json")
        found = json.loads(demo.ucp(*rehearsed, timeout=300).stdout)
    assert found["well"] and found["compared"]
    assert (found["lost"], found["changed"], found["gone"]) == ([], [], [])
    assert found["kinds"]["namespaces"] > 3 and found["kinds"]["secrets"] > 3
    assert {(each["tool"], each["to"]) for each in found["moves"]} == set(pins.items())
    assert not copy.exists()
    assert (control_planes(demo), pids(demo)) == (running, components)
    assert versions_of_objects(demo).items() >= objects.items()
    assert demo.uids() == ids


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_newer_ucp_upgrades_nothing_automatically_but_part_by_part_on_request(
    demo: Workbench,
) -> None:
    until("well before", lambda: well(demo))
    ids, apps = demo.uids(), pods(demo, "stage")
    assert apps
    pinned, before = versions(demo)["crossplane"], pids(demo)
    with installed(CACHE, PINS):
        with newer(demo, PINS):
            said = demo.ucp("start", "--yes", timeout=300).stderr
            assert "ucp upgrade --plan" in said
            assert versions(demo)["crossplane"] == pinned
            assert pids(demo) == before

            plan = json.loads(demo.ucp("upgrade", "--plan", "-o", "json").stdout)
            changes = {
                each["object"]: each["reason"]
                for each in plan["steps"]
                if each["action"] == "change"
            }
            assert PINS["crossplane"] in changes["component crossplane"]
            assert PINS["kubernetes"] in changes["cluster demo-stage"]
            assert versions(demo)["crossplane"] == pinned

            parts = ("crossplane", "stage")
            topology = load(demo.workspace / "ucp.yaml")
            if cut_somewhere(demo, plans.upgrade(topology, parts), "upgrade", *parts):
                assert demo.status()["unfinished"][0]["next"].endswith("upgrade crossplane stage")
            # The same command completes the interrupted upgrade.
            demo.ucp("upgrade", *parts, timeout=300)
            assert demo.status()["unfinished"] == []
        assert versions(demo)["crossplane"] == f"v{PINS['crossplane']}"
        assert kubernetes_of(demo, "stage") == f"v{PINS['kubernetes']}"
        assert kubernetes_of(demo, "prod") == f"v{CATALOGUE['kubernetes'].version}"
        assert (demo.uids(), pods(demo, "stage")) == (ids, apps)
        assert {each: pids(demo)[each] for each in APPS[:2]} == {
            each: before[each] for each in APPS[:2]
        }
        until("well after", lambda: well(demo))
        # An older ucp doesn't change versions that are newer than its own.
        demo.ucp("start", "--yes")
        assert versions(demo)["crossplane"] == f"v{PINS['crossplane']}"
        demo.ucp("stop", "--yes")
